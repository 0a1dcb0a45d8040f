import type { Pool } from 'pg'
import { describe, expect, test } from 'vitest'
import { catalog, type DeadLetterQuery } from '../src/index.ts'
import { type SearchLimits, searchPage } from '../src/read/search.ts'
import { dead, ListSource, migrated, NOW, poolOn, refusal } from './rig.ts'

const pool = await migrated('redrive_catalog_search')
const made = catalog({ pool, approval: 'anyone' })

const SOURCES = ['orders', 'parcels', 'refunds']
const BANKS = ['eu-bank', 'us-bank', 'uk_bank']
/** 300 dead letters: 3 sources, 4 groups in each, 25 with the same time of the last failure, over several days. */
const ALL = Array.from({ length: 300 }, (_, at) => ({
  source: SOURCES[at % 3] as string,
  bank: BANKS[((at * 7) % 11) % 3] as string,
  id: `message-${at}`,
  lastAt: NOW - 9_000_000 * Math.floor(at / 25),
}))
for (const source of SOURCES) {
  const of = ALL.filter((one) => one.source === source)
  await made.ingest(
    new ListSource(
      of.map(({ bank, id, lastAt }, at) =>
        dead({
          signature: `1-${String(at % 4).padStart(16, '0')}`,
          message: `no rate for customer "${bank}"`,
          code: at % 2 === 0 ? 'NO_RATE' : 'NO_CUSTOMER',
          at: lastAt - 60_000,
          lastAt,
          delivery: { id, source },
        }),
      ),
      source,
    ),
  )
}
const discarded = await Promise.all(
  SOURCES.map(async (source) => {
    const { deadLetters } = await made.deadLetters({ sources: [source], after: 0, limit: 200 })
    const ids = deadLetters.filter((_, at) => at % 3 === 0).map(({ id }) => id)
    await made.discard({ ids }, { by: 'ada' })
    return deadLetters.filter(({ id }) => ids.includes(id)).map(({ messageId }) => messageId)
  }),
).then((lists) => new Set(lists.flat()))

/** One row for each step, and one step for each page: the most frontiers that are possible. */
const TINY: SearchLimits = { budgetMs: 0, rowsMin: 1, rowsMax: 1 }

interface Row {
  readonly id: string
  readonly message_id: string
  readonly last_ms: number
}

async function allPages(query: DeadLetterQuery, limits: SearchLimits): Promise<readonly Row[]> {
  const found: Row[] = []
  let cursor: string | undefined
  do {
    const page = await searchPage<Row>(
      { pool, timeoutMs: 5_000 },
      { ...query, ...(cursor === undefined ? {} : { cursor }) },
      limits,
    )
    found.push(...page.rows)
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return found
}

describe('a search', () => {
  test('by text finds the dead letters whose message has it, whatever else their group has', async () => {
    for (const bank of BANKS) {
      const page = await made.deadLetters({ after: 0, texts: [bank.toUpperCase()], limit: 200 })
      const expected = ALL.filter((one) => one.bank === bank && !discarded.has(one.id))
      expect(page.deadLetters.map(({ messageId }) => messageId).sort()).toEqual(
        expected.map(({ id }) => id).sort(),
      )
      expect(page).toMatchObject({ nextCursor: undefined, searchedTo: undefined })
    }
  })

  test.each<[string, DeadLetterQuery, (one: (typeof ALL)[number]) => boolean]>([
    ['sources', { after: 0, texts: ['eu-bank'] }, ({ id }) => !discarded.has(id)],
    [
      'statuses',
      { after: 0, texts: ['eu-bank'], sources: ['orders'], statuses: ['open', 'discarded'] },
      ({ source }) => source === 'orders',
    ],
    [
      'sources and statuses',
      { after: 0, texts: ['eu-bank'], statuses: ['open', 'discarded', 'resolved'] },
      () => true,
    ],
  ])(
    'over several %s misses and repeats nothing, however small its steps are',
    async (_, query, isIn) => {
      const expected = ALL.filter((one) => one.bank === 'eu-bank' && isIn(one)).map(({ id }) => id)
      for (const limit of [1, 7, 200]) {
        for (const limits of [
          TINY,
          { ...TINY, budgetMs: 10_000 },
          { ...TINY, rowsMax: 60, rowsMin: 60 },
        ]) {
          const found = await allPages({ ...query, limit }, limits)
          expect(found.map((row) => row.message_id).sort()).toEqual(expected.toSorted())
          const order = found.map(({ last_ms, id }) => `${last_ms} ${id}`)
          expect(order).toEqual(order.toSorted().toReversed())
        }
      }
    },
  )

  test('over several groups misses and repeats nothing', async () => {
    const { groups } = await made.groups({ sources: ['orders', 'refunds'] })
    const query = { groups: groups.map(({ id }) => id), texts: ['us-bank'], limit: 3 }
    const expected = ALL.filter(
      ({ bank, source, id }) => bank === 'us-bank' && source !== 'parcels' && !discarded.has(id),
    )
    const found = await allPages(query, TINY)
    expect(found.map((row) => row.message_id).sort()).toEqual(expected.map(({ id }) => id).sort())
  })

  test('that runs out of time reports how far back it went and where to continue', async () => {
    const query = { after: 0, sources: ['orders'], texts: ['no such customer'] }
    const page = await searchPage<Row>({ pool, timeoutMs: 5_000 }, query, TINY)
    expect(page.rows).toEqual([])
    const [searchedTo] = /^\d+/.exec(page.nextCursor ?? '') ?? []
    expect(page.searchedTo).toBe(Number(searchedTo))
    const newest = ALL.filter(({ source, id }) => source === 'orders' && !discarded.has(id))
    expect(page.searchedTo).toBe(newest[19]?.lastAt)
    expect(await allPages(query, TINY)).toEqual([])
  })

  test('by other values that no index has works in the same way', async () => {
    const query = { after: 0, sources: ['parcels'], code: 'NO_RATE', limit: 4 } as const
    const inOneStep = await made.deadLetters({ ...query, limit: 200 })
    const found = await allPages(query, TINY)
    expect(found.map(({ id }) => id)).toEqual(inOneStep.deadLetters.map(({ id }) => id))
    expect(found.length).toBeGreaterThan(20)
  })
})

/** Returns a pool with a limit of 100 ms instead of 60 s for the statements of a plan. */
function hastyPool(): Pool {
  const hasty = poolOn(pool.options.connectionString ?? '')
  hasty.on('connect', (client) => {
    const query = client.query.bind(client) as (...args: unknown[]) => Promise<unknown>
    const asked = (first: { readonly text: string } | string, ...rest: unknown[]) =>
      typeof first === 'string'
        ? query(first, ...rest)
        : query({ ...first, text: first.text.replace("'60s'", "'100ms'") }, ...rest)
    Object.assign(client, { query: asked })
  })
  return hasty
}

describe('a plan', () => {
  test('by text selects the same dead letters as a list', async () => {
    const { groups } = await made.groups({ sources: ['orders'] })
    for (const query of [
      { after: 0, sources: ['orders'], texts: ['eu-bank'] },
      { groups: groups.map(({ id }) => id), texts: ['eu-bank'] },
      { groups: [groups[0]?.id ?? ''], texts: ['UK_BANK'], code: groups[0]?.code ?? '' },
    ]) {
      const listed = await made.deadLetters({ ...query, limit: 200 })
      const run = await made.replays.plan({ selection: { query }, by: 'ada', maxAge: '30d' })
      const items = await made.replays.items({ run: run.id, limit: 200 })
      expect(items.map(({ deadLetter }) => deadLetter).sort()).toEqual(
        listed.deadLetters.map(({ id }) => id).sort(),
      )
      expect(run.counts.planned).toBeGreaterThan(0)
    }
  })

  test('that takes too long is rejected with the way to narrow it', async () => {
    const hasty = hastyPool()
    const impatient = catalog({ pool: hasty, approval: 'anyone' })
    const locker = await pool.connect()
    await locker.query('begin; lock table redrive_catalog.dead_letter in access exclusive mode')
    const query = { after: 0, sources: ['orders'], texts: ['eu-bank'] }
    const { message } = await refusal(impatient.replays.plan({ selection: { query }, by: 'ada' }))
    await locker.query('rollback')
    locker.release()
    await hasty.end()
    expect(message).toContain('exceeded its time limit')
    expect(message).toContain('Narrow it by a group, a key or a shorter time range')
  })

  test('rejects a second way to select instead of ignoring it', async () => {
    const { groups } = await made.groups({ sources: ['orders'] })
    const selection = { group: groups[0]?.id ?? '', text: 'eu-bank' }
    const { message } = await refusal(made.replays.plan({ selection, by: 'ada' }))
    expect(message).toContain('"text" is not allowed next to "group"')
  })
})
