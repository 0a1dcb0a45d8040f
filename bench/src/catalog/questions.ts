// Typical queries of a catalog, each with the bare statement that reads the same rows on one
// connection.
import type { SeededRandom } from '@redrive/testing'
import type { Pool } from 'pg'
import type { DeadLetterQuery } from '@redrive/catalog'
import { DAYS, type Filled } from './filled.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS
const PAGE = 50
const TENANTS = 500

export interface Question {
  readonly name: string
  /** Returns the same query for the catalog and for the server; both return the number of rows. */
  readonly pick: (world: Filled, random: SeededRandom) => QueryCase
}

export interface QueryCase {
  /** Runs before both, untimed. */
  readonly find?: () => Promise<void>
  readonly catalog: () => Promise<number>
  readonly bare: () => Promise<number>
}

/** All columns of a list, as a program would read them. */
const LETTERS = `select d.*, s.name as source, s.handler from redrive_catalog.dead_letter d
  join redrive_catalog.source s on s.id = d.source_id`
const NEWEST = 'order by d.last_failed_at desc, d.id desc limit 51'

const rowsOf = async (pool: Pool, text: string, values: readonly unknown[]): Promise<number> =>
  (await pool.query(text, [...values])).rows.length

const listed = async ({ made }: Filled, query: DeadLetterQuery): Promise<number> =>
  (await made.deadLetters(query)).deadLetters.length

/**
 * Picks a group by position. A few groups have most dead letters, and every position is picked
 * equally often.
 */
const someGroup = ({ groups }: Filled, random: SeededRandom): string =>
  groups[random.int(groups.length)] ?? ''

const someTime = ({ start }: Filled, random: SeededRandom): number =>
  start + HOUR_MS + random.int(DAYS * DAY_MS - 2 * HOUR_MS)

/**
 * The same facts: sums of each source and class, the oldest open dead letter, the most important
 * groups.
 */
const COUNTERS = [
  `select s.name, g.class, sum(g.open_count), sum(g.count), sum(g.attempts) from redrive_catalog.failure_group g
    join redrive_catalog.source s on s.id = g.source_id group by 1, 2`,
  `select s.id, (select d.last_failed_at from redrive_catalog.dead_letter d where d.source_id = s.id and d.status = 'open'
    order by d.last_failed_at, d.id limit 1) from redrive_catalog.source s`,
  `select g.id, g.title, g.open_count, g.state, g.muted_until, g.created_at, g.regressed_at
    from redrive_catalog.failure_group g where g.created_at > now() - interval '1 day' or g.regressed_at > now() - interval '1 day'
      or g.open_count = (select max(o.open_count) from redrive_catalog.failure_group o where o.source_id = g.source_id)
    order by g.created_at desc limit 1000`,
]

export const PAGES: readonly Question[] = [
  {
    name: 'page of a group',
    pick(world, random) {
      const group = someGroup(world, random)
      return {
        catalog: () => listed(world, { groups: [group], limit: PAGE }),
        bare: () =>
          rowsOf(world.pool, `${LETTERS} where d.group_id = $1 and d.status = 'open' ${NEWEST}`, [
            group,
          ]),
      }
    },
  },
  {
    name: 'later page of a group',
    pick(world, random) {
      const group = someGroup(world, random)
      const at = someTime(world, random)
      // The cursor that the previous page would return: a position in the middle of the group.
      const next = `${at}_${'0'.repeat(8)}-0000-0000-0000-${'0'.repeat(12)}`
      return {
        catalog: () => listed(world, { groups: [group], cursor: next, limit: PAGE }),
        bare: () =>
          rowsOf(
            world.pool,
            `${LETTERS} where d.group_id = $1 and d.status = 'open' and d.last_failed_at < $2 ${NEWEST}`,
            [group, new Date(at)],
          ),
      }
    },
  },
  {
    name: 'page of an hour',
    pick(world, random) {
      const after = someTime(world, random)
      const before = after + HOUR_MS
      return {
        catalog: () => listed(world, { after, before, limit: PAGE }),
        bare: () =>
          rowsOf(
            world.pool,
            `${LETTERS} where d.source_id = 1 and d.status = 'open' and d.last_failed_at >= $1
              and d.last_failed_at < $2 ${NEWEST}`,
            [new Date(after), new Date(before)],
          ),
      }
    },
  },
  {
    name: 'by key',
    pick(world, random) {
      const key = `m-${random.int(world.count)}`
      return {
        catalog: () => listed(world, { key }),
        bare: () => rowsOf(world.pool, `${LETTERS} where d.key = $1 ${NEWEST}`, [key]),
      }
    },
  },
  {
    name: 'groups',
    pick: (world) => ({
      catalog: async () => (await world.made.groups()).groups.length,
      bare: () =>
        rowsOf(
          world.pool,
          `select g.*, s.name as source, s.handler from redrive_catalog.failure_group g
            join redrive_catalog.source s on s.id = g.source_id order by g.last_seen_at desc, g.id desc limit 51`,
          [],
        ),
    }),
  },
  {
    name: 'counters',
    pick: (world) => ({
      catalog: async () => (await world.made.counts()).sources.length,
      async bare() {
        let rows = 0
        for (const text of COUNTERS) rows += await rowsOf(world.pool, text, [])
        return rows
      },
    }),
  },
  {
    name: 'trend of a group',
    pick(world, random) {
      const group = someGroup(world, random)
      const after = world.start
      const before = after + DAYS * DAY_MS
      return {
        catalog: async () =>
          (await world.made.trend({ per: 'hour', after, before, groups: [group] })).length,
        bare: () =>
          rowsOf(
            world.pool,
            `select hour, count from redrive_catalog.group_hour where group_id = $1 and hour >= $2 and hour < $3 order by hour`,
            [group, new Date(after), new Date(before)],
          ),
      }
    },
  },
]

/** Filters that search the largest groups: only a few of their rows match. */
export const FILTERS: readonly Question[] = [
  {
    name: 'extracted key in a group',
    pick(world, random) {
      const order = `o-${random.int(world.count)}`
      const lookup =
        'select dead_letter_id from redrive_catalog.dead_letter_lookup where name = $1 and value = $2'
      let group = ''
      return {
        async find() {
          const { rows } = await world.pool.query<{ group_id: string }>(
            `select group_id from redrive_catalog.dead_letter where id in (${lookup})`,
            ['order', order],
          )
          group = rows[0]?.group_id ?? ''
        },
        catalog: () => listed(world, { groups: [group], extracted: { order } }),
        bare: () =>
          rowsOf(world.pool, `${LETTERS} where d.id in (${lookup}) ${NEWEST}`, ['order', order]),
      }
    },
  },
  {
    name: 'JSON path in a group',
    pick(world, random) {
      const [group = ''] = world.groups
      const tenant = `t-${random.int(TENANTS)}`
      return {
        catalog: () =>
          listed(world, { groups: [group], json: { '/order/tenant': tenant }, limit: 10 }),
        bare: () =>
          rowsOf(
            world.pool,
            `${LETTERS} where d.group_id = $1 and d.status = 'open' and (select p.preview #>> '{order,tenant}'
              from redrive_catalog.dead_letter_payload p where p.dead_letter_id = d.id and p.part = 0) = $2
              order by d.last_failed_at desc, d.id desc limit 11`,
            [group, tenant],
          ),
      }
    },
  },
]

/** Searches that match nothing: every row of the scope is compared until the time ends. */
export const WIDE: readonly {
  readonly name: string
  readonly ask: (world: Filled, random: SeededRandom) => Promise<unknown>
}[] = [
  {
    name: 'a JSON value that does not exist, in all groups',
    ask: (world) =>
      listed(world, { groups: world.groups.slice(0, 100), json: { '/order/id': 'none' } }),
  },
  {
    name: 'a text that does not exist, in the largest group',
    ask: (world) => listed(world, { groups: world.groups.slice(0, 1), texts: ['no such host'] }),
  },
  {
    name: 'a text that does not exist, in the largest groups',
    ask: (world) => listed(world, { groups: world.groups.slice(0, 100), texts: ['no such host'] }),
  },
  {
    name: 'a text that does not exist, at any time',
    ask: (world) => listed(world, { after: 0, texts: ['no such host'] }),
  },
  {
    name: 'a header that does not exist, at any time',
    ask: (world) => listed(world, { after: 0, headers: { tenant: 'none' } }),
  },
]
