import type { DrainedDeadLetter } from '@redrive/runtime'
import { migrate as migrateSchema } from '@redrive/postgres-internal'
import { afterAll, expect, test } from 'vitest'
import { SCHEMA } from '../src/database.ts'
import { encodeDeadLetter } from '../src/dead-letter-codec.ts'
import { catalog, migrate } from '../src/index.ts'
import { deadLetterId, groupId, identityHash, sha256Of, uuidOf } from '../src/ingest/identity.ts'
import { TABLES } from '../src/migrations/0001-tables.ts'
import { PARTITIONS } from '../src/migrations/0002-partitions.ts'
import { REPLAY } from '../src/migrations/0003-replay.ts'
import { UNRELEASED } from '../src/migrations/0004-unreleased.ts'
import { COUNTS } from '../src/migrations/0005-counts.ts'
import { FAILURES } from '../src/migrations/0006-failures.ts'
import { MAKE_DAYS } from '../src/statements.ts'
import { dead, emptyDatabase, NOW, poolOn, rows } from './rig.ts'
import { Wire } from './replay-stage.ts'

/** The schema before failures had filters, set-aside messages and merged groups. */
const VERSION_6 = {
  ...SCHEMA,
  migrations: {
    '0001-tables': TABLES,
    '0002-partitions': PARTITIONS,
    '0003-replay': REPLAY,
    '0004-unreleased': UNRELEASED,
    '0005-counts': COUNTS,
    '0006-failures': FAILURES,
  },
  afterwards: MAKE_DAYS,
}

const pool = poolOn(await emptyDatabase('redrive_catalog_upgrade_oldest'), 10)
afterAll(() => pool.end())

const SOURCE = 'orders'
const SIGNATURE = '1-00000000000000aa'
const OTHER = '1-00000000000000bb'
const AT = NOW - 3_600_000
const RUN = '0198a000-0000-7000-8000-000000000001'

const bodyOf = (name: string) => Buffer.from(JSON.stringify({ order: name }))

/** A dead letter as a consumer of that time wrote it. */
const letterOf = (name: string, signature = SIGNATURE, cycle = 1): DrainedDeadLetter =>
  dead({
    at: AT,
    signature,
    cycle,
    delivery: { id: name, key: `key-${name}`, bytes: bodyOf(name), headers: { tenant: 'Zoë' } },
  })

const idOf = (name: string) => {
  const sha256 = sha256Of(bodyOf(name))
  const identity = { source: SOURCE, messageId: name, cycle: 1, sha256 }
  return deadLetterId(AT, identityHash(identity))
}

const replayIdOf = (name: string) => uuidOf(sha256Of(`replay ${name}`))

/** The names of the dead letters with their status, group and cycle. */
const LETTERS = [
  ['first', 'open', SIGNATURE, 1],
  ['done', 'resolved', SIGNATURE, 1],
  ['sent', 'replaying', SIGNATURE, 1],
  ['lost', 'unknown', SIGNATURE, 1],
  ['again', 'open', OTHER, 2],
] as const

/** Fills the tables of version 6, as its release did. */
async function fill(): Promise<void> {
  const run = (text: string, values: readonly unknown[] = []) => rows(pool, text, values)
  await run(
    `insert into redrive_catalog.source (name, handler, retention) values ($1, 'charge', '14 days')`,
    [SOURCE],
  )
  for (const [signature, state, owner, all, open] of [
    [SIGNATURE, 'open', null, 4, 3],
    [OTHER, 'muted', 'ann', 1, 1],
  ] as const) {
    await run(
      `insert into redrive_catalog.failure_group (id, source_id, algorithm, signature, class, title, sample, state, owner,
          first_seen_at, last_seen_at, count, open_count, attempts)
        values ($1, 1, 1, $2, 'unknown', 'card <n> declined', 'card 4711 declined', $3, $4,
          to_timestamp($5::float8 / 1000), to_timestamp($5::float8 / 1000), $6::bigint, $7, 3 * $6::bigint)`,
      [groupId(SOURCE, signature), signature, state, owner, AT, all, open],
    )
    await run(
      `insert into redrive_catalog.group_minute values ($1, to_timestamp($2::float8 / 1000), $3)`,
      [groupId(SOURCE, signature), AT, all],
    )
  }
  for (const [name, status, signature, cycle] of LETTERS) {
    const letter = letterOf(name, signature, cycle)
    const [record] = letter.delivery.cycle.history
    const { number, at, class: kind, message, code = null } = record ?? {}
    // The history of that release had no type, no wait and no count.
    const history = JSON.stringify([{ number, at, class: kind, signature, message, code }])
    await run(
      `insert into redrive_catalog.dead_letter (id, group_id, first_failed_at, last_failed_at, source_id, attempts, cycle,
          payload_bytes, is_quarantined, is_tombstone, status, class, reason, message_id, key, origin, content_type,
          message, headers, history)
        values ($1, $2, to_timestamp($3::float8 / 1000), to_timestamp($3::float8 / 1000), 1, 3, $4, $5, false, false, $6, 'unknown',
          'attempts_exhausted', $7, $8, 'orders', 'application/json', 'card 4711 declined', '{"tenant":"Zoë"}', $9)`,
      [
        idOf(name),
        groupId(SOURCE, signature),
        AT,
        cycle,
        bodyOf(name).length,
        status,
        name,
        `key-${name}`,
        history,
      ],
    )
    await run(
      `insert into redrive_catalog.dead_letter_payload (dead_letter_id, part, bytes, wire, preview) values ($1, 0, $2, $3, $4)`,
      [idOf(name), bodyOf(name), encodeDeadLetter(letter), JSON.stringify({ order: name })],
    )
    await run(`insert into redrive_catalog.dead_letter_lookup values ($1, 'order', $2)`, [
      idOf(name),
      name,
    ])
  }
  await run(
    `insert into redrive_catalog.failure_cycle values ($1, 1, $2, $3, to_timestamp($4::float8 / 1000), to_timestamp($4::float8 / 1000), 3,
      'attempts_exhausted', '[]')`,
    [idOf('again'), groupId(SOURCE, SIGNATURE), replayIdOf('again'), AT],
  )
  await run(
    `insert into redrive_catalog.source_day (source_id, day, count, last_ingested_at)
      values (1, (to_timestamp($1::float8 / 1000) at time zone 'UTC')::date, 5, now())`,
    [AT],
  )
  await run(
    `insert into redrive_catalog.comment (subject, author, text) values ($1, 'ann', 'the bank knows')`,
    [groupId(SOURCE, OTHER)],
  )
  await run(
    `insert into redrive_catalog.ingest_quarantine (identity, source_id, reason, message_id, payload_bytes, sha256, head)
      values ($1, 1, 'the body has 9 bytes', 'big', 9, $2, $3)`,
    [uuidOf(sha256Of('big')), sha256Of('too large'), Buffer.from('too')],
  )
  const options = {
    ratePerSecond: 1_000,
    canary: [],
    maxFailureRatio: 0.5,
    outcomeTimeoutMs: 300_000,
  }
  await run(
    `insert into redrive_catalog.replay_run (id, source_id, state, hash, asked, options, note, planned_by, approved_by,
        approved_at, published, unknown) values ($1, 1, 'running', 'h', '{}', $2, '', 'ada', 'bob', now(), 1, 1)`,
    [RUN, JSON.stringify(options)],
  )
  for (const [place, [name, state]] of (
    [
      ['sent', 'published'],
      ['lost', 'unknown'],
    ] as const
  ).entries()) {
    await run(
      `insert into redrive_catalog.replay_item (run_id, place, dead_letter_id, replay_id, cycle, version, state,
          content_sha256, publishes, published_at) values ($1, $2, $3, $4, 1, 0, $5, $6, 1, now())`,
      [RUN, place, idOf(name), replayIdOf(name), state, sha256Of(bodyOf(name))],
    )
  }
}

test('a database of schema version 6 is upgraded: dead letters, groups, runs and set-aside messages stay', async () => {
  expect(await migrateSchema(pool, VERSION_6)).toHaveLength(6)
  await fill()
  const applied = await migrate(pool)
  expect([applied.at(0), applied.length]).toEqual(['0007-filters', applied.length])
  const from = catalog({ pool })

  const { groups } = await from.groups({ sources: [SOURCE] })
  const shown = groups.map(
    ({ id, openCount, replayingCount, undecidedCount, count, state, owner }) => ({
      ...{ id, openCount, replayingCount, undecidedCount, count, state, owner },
    }),
  )
  expect(new Set(shown)).toEqual(
    new Set([
      {
        ...{ id: groupId(SOURCE, SIGNATURE), openCount: 1, replayingCount: 1, undecidedCount: 1 },
        ...{ count: 4, state: 'open', owner: undefined },
      },
      {
        ...{ id: groupId(SOURCE, OTHER), openCount: 1, replayingCount: 0, undecidedCount: 0 },
        ...{ count: 1, state: 'muted', owner: 'ann' },
      },
    ]),
  )
  for (const [name, status, , cycle] of LETTERS) {
    const found = await from.deadLetter(idOf(name))
    expect(found).toMatchObject({ status, cycle, key: `key-${name}`, messageId: name })
    expect(Buffer.from(found?.drained.delivery.bytes ?? [])).toEqual(bodyOf(name))
    expect(found?.drained.delivery.headers).toEqual({ tenant: 'Zoë' })
    expect(found?.history).toMatchObject([{ message: 'card 4711 declined', counted: true }])
  }
  expect(await from.cycles(idOf('again'))).toMatchObject([
    { cycle: 1, replayId: replayIdOf('again') },
  ])
  expect((await from.setAside.list({ sources: [SOURCE] })).messages).toMatchObject([
    { messageId: 'big', reason: 'body_too_large', isComplete: false, status: 'open' },
  ])
  const search = { sources: [SOURCE], extracted: { order: 'first' } }
  expect((await from.deadLetters(search)).deadLetters.map(({ id }) => id)).toEqual([idOf('first')])

  // Messages that the broker delivers again are known, and new ones join the group.
  const wire = new Wire(SOURCE, [letterOf('first'), letterOf('new')])
  expect(await from.ingest(wire)).toMatchObject({ added: 1, known: 1 })
  expect(await from.group(groupId(SOURCE, SIGNATURE))).toMatchObject({ openCount: 2, count: 5 })

  // The run continues: its replays are confirmed by the ids that were published then.
  wire.say({ replayId: replayIdOf('sent'), outcome: 'handled', at: NOW })
  const replayer = from.replays.replayer({ sources: [{ source: wire }] })
  await replayer.confirm()
  expect(await from.deadLetter(idOf('sent'))).toMatchObject({ status: 'resolved' })
  await from.replays.setOutcome([idOf('lost')], { as: 'open', by: 'ada' })
  await replayer.sweep()
  expect(await from.replays.run(RUN)).toMatchObject({ state: 'done', counts: { resolved: 1 } })

  // All open ones can be replayed.
  const ids = ['first', 'lost', 'again', 'new'].map(idOf)
  const plan = await from.replays.plan({
    selection: { ids },
    by: 'ada',
    ratePerSecond: 5_000,
    canary: [],
  })
  expect(plan.counts).toMatchObject({ planned: 4 })
  await from.replays.approve(plan.id, { hash: plan.hash, by: 'bob' })
  await replayer.turn()
  await replayer.confirm()
  expect(wire.sent.map(({ deadLetter }) => deadLetter.delivery.key).toSorted()).toEqual([
    ...['key-again', 'key-first', 'key-lost', 'key-new'],
  ])
  for (const id of ids) expect(await from.deadLetter(id)).toMatchObject({ status: 'resolved' })
  expect(await from.counts()).toMatchObject({ sources: [{ source: SOURCE, open: 0, setAside: 1 }] })
})
