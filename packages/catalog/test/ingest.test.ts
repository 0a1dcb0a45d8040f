import { MemoryBroker, memorySource, send, deadLetterQueue } from '@redrive/memory'
import { encodeHeaders, FIRST_CYCLE } from '@redrive/core'
import { Pool } from 'pg'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { catalog, type IngestOptions } from '../src/index.ts'
import { dead, ListSource, migrated, NOW, refusal, rows } from './rig.ts'

const pool = await migrated('redrive_catalog_ingest')
const made = catalog({ pool })

beforeEach(async () => {
  await pool.query(`truncate redrive_catalog.dead_letter, redrive_catalog.dead_letter_payload,
    redrive_catalog.dead_letter_lookup,
    redrive_catalog.failure_group, redrive_catalog.group_minute, redrive_catalog.group_hour,
    redrive_catalog.source_day, redrive_catalog.source, redrive_catalog.undated,
    redrive_catalog.set_aside, redrive_catalog.comment cascade`)
})

const counted = async () => ({
  letters: (await rows(pool, 'select id from redrive_catalog.dead_letter order by id')).map(
    ({ id }) => id,
  ),
  payloads: await rows(
    pool,
    'select dead_letter_id, part from redrive_catalog.dead_letter_payload order by 1, 2',
  ),
  groups: await rows(
    pool,
    'select id, count, open_count, attempts from redrive_catalog.failure_group order by id',
  ),
  minutes: await rows(pool, 'select * from redrive_catalog.group_minute order by 1, 2'),
  hours: await rows(pool, 'select * from redrive_catalog.group_hour order by 1, 2'),
  days: await rows(
    pool,
    'select source_id, day::text, count from redrive_catalog.source_day order by 1, 2',
  ),
})

const many = (count: number, groups: number) =>
  Array.from({ length: count }, (_, at) =>
    dead({
      signature: `1-${String(at % groups).padStart(16, '0')}`,
      at: NOW - at * 1_000,
      delivery: { id: `m${at}` },
    }),
  )

/** A database that is slow for each group, and processes groups in the given order. */
async function slowly() {
  const { connectionString } = pool.options
  const options = '-c enable_hashjoin=off -c enable_mergejoin=off -c enable_seqscan=off'
  const other = new Pool({ connectionString, options })
  await other.query(`create function public.slow() returns trigger language plpgsql as
    $$ begin perform pg_sleep(0.001); return new; end $$;
    create trigger slow before insert or update on redrive_catalog.failure_group
      for each row execute function public.slow()`)
  onTestFinished(async () => {
    await other.query('drop function public.slow cascade')
    await other.end()
  })
  return catalog({ pool: other })
}

test('a poll of a known source writes nothing, and changed options are stored', async () => {
  const source = new ListSource([])
  const poll = (options: IngestOptions = {}) => made.ingest(source, options)
  const stored = async () =>
    (await rows(pool, 'select xmin::text, handler, retention from redrive_catalog.source'))[0]
  await poll({ retention: '3d', handler: 'bill' })
  const first = await stored()
  await poll({ retention: '3d', handler: 'bill' })
  await poll()
  expect(await stored()).toEqual(first)
  await poll({ handler: 'ship' })
  expect(await stored()).toMatchObject({ handler: 'ship', retention: first?.['retention'] })
})

describe('ingest', () => {
  test('stores everything in batches, counts it by group and time, and releases it', async () => {
    const source = new ListSource(many(250, 7))
    expect(await made.ingest(source, { batch: 40 })).toEqual({
      added: 250,
      failedAgain: 0,
      known: 0,
      setAside: 0,
    })
    expect(source.released).toBe(250)
    const { letters, payloads, groups, minutes, hours, days } = await counted()
    const sum = (all: readonly Record<string, unknown>[]) =>
      all.reduce((total, { count }) => total + Number(count), 0)
    expect([letters.length, payloads.length, groups.length]).toEqual([250, 250, 7])
    expect([sum(groups), sum(minutes), sum(hours), sum(days)]).toEqual([250, 250, 250, 250])
    expect(groups.map(({ open_count }) => open_count)).toEqual(groups.map(({ count }) => count))
    const [first] = groups
    expect(Number(first?.['attempts'])).toBe(3 * Number(first?.['count']))
  })

  test('changes nothing when it is repeated after a crash between commit and release', async () => {
    const source = new ListSource(many(10, 3))
    source.failingReleases = 1
    expect(String(await refusal(made.ingest(source)))).toContain('the broker is gone')
    const before = await counted()
    expect(before.letters).toHaveLength(10)
    expect(await made.ingest(source)).toEqual({
      added: 0,
      failedAgain: 0,
      known: 10,
      setAside: 0,
    })
    expect(await counted()).toEqual(before)
    expect(source.released).toBe(10)
  })

  test('keeps the time of the first ingest for a dead letter without a failure time', async () => {
    const undated = dead({
      delivery: { id: 'foreign', cycle: FIRST_CYCLE },
      reason: 'broker_rejected',
    })
    await made.ingest(new ListSource([undated]))
    const before = await counted()
    expect(await made.ingest(new ListSource([undated]))).toMatchObject({
      added: 0,
      failedAgain: 0,
      known: 1,
    })
    expect(await counted()).toEqual(before)
    const { groups } = await made.groups()
    expect(groups).toMatchObject([{ class: 'unknown', title: 'broker_rejected', algorithm: 3 }])
  })

  test('adds separate dead letters for another cycle, source or body of the same message id', async () => {
    const one = dead({ delivery: { id: 'same' } })
    await made.ingest(new ListSource([one]))
    await made.ingest(new ListSource([dead({ delivery: { id: 'same' }, cycle: 2 })]))
    await made.ingest(new ListSource([one]), { name: 'orders in the other cluster' })
    await made.ingest(new ListSource([dead({ delivery: { id: 'same', bytes: Buffer.from('2') } })]))
    await made.ingest(new ListSource([one, one]))
    expect((await counted()).letters).toHaveLength(4)
  })

  test('creates ids that start with the time of the first failure', async () => {
    await made.ingest(new ListSource([dead({ at: NOW - 5_000, lastAt: NOW })]))
    const [id] = (await counted()).letters
    expect(Number.parseInt(String(id).replaceAll('-', '').slice(0, 12), 16)).toBe(NOW - 5_000)
  })

  test('keeps exact times and texts', async () => {
    const message = '€'.repeat(500)
    const all = Array.from({ length: 50 }, (_, at) =>
      dead({ at: NOW + 5_001 + at, lastAt: NOW + 10_007, message, delivery: { type: `🙂 ${at}` } }),
    )
    await made.ingest(new ListSource(all))
    const { groups } = await made.groups()
    expect(groups).toMatchObject([
      { firstSeenAt: NOW + 10_007, lastSeenAt: NOW + 10_007, count: 50 },
    ])
    const { deadLetters } = await made.deadLetters({ groups: [groups[0]?.id ?? ''] })
    expect(
      deadLetters.map((one) => [one.firstFailedAt, one.lastFailedAt, one.type, one.message]),
    ).toEqual(all.map((_, at) => [NOW + 5_001 + at, NOW + 10_007, `🙂 ${at}`, message]).reverse())
    const [early, late] = [NOW + 1_000, NOW + 20_000]
    await made.ingest(new ListSource([late, early].map((at) => dead({ at }))))
    expect(await made.group(groups[0]?.id ?? '')).toMatchObject({
      firstSeenAt: early,
      lastSeenAt: late,
    })
  })

  test('adds each dead letter once and never deadlocks when several ingests store the same ones', async () => {
    const all = many(600, 23)
    const shuffled = (step: number) =>
      all.map((_, at) => all[((at + 1) * step) % 600] as (typeof all)[0])
    const orders = [1, 7, 11, 13, 599].map(shuffled)
    for (const batch of [50, 600]) {
      const name = `in batches of ${batch}`
      const ingesting = orders.map((some) => made.ingest(new ListSource(some), { batch, name }))
      const done = await Promise.all(ingesting)
      expect(done.reduce((sum, { added }) => sum + added, 0)).toBe(600)
    }
    const { groups, letters } = await counted()
    expect(letters).toHaveLength(1_200)
    expect(groups.reduce((sum, { count }) => sum + Number(count), 0)).toBe(1_200)
  })

  test('never deadlocks when several ingests store different dead letters of the same groups', async () => {
    const GROUPS = 40
    const ofOne = (ingester: number, step: number) =>
      Array.from({ length: GROUPS }, (_, at) =>
        dead({
          signature: `1-${String(((at + 1) * step) % GROUPS).padStart(16, '0')}`,
          delivery: { id: `${ingester}-${at}` },
        }),
      )
    const slow = await slowly()
    // First with new groups, then with existing groups.
    for (const round of [1, 2, 3]) {
      const ingesting = [1, 3, 7, 9, 39].map((step, at) =>
        slow.ingest(new ListSource(ofOne(round * 10 + at, step))),
      )
      await Promise.all(ingesting)
    }
    const { groups, minutes } = await counted()
    expect(groups.map(({ count }) => Number(count))).toEqual(Array<number>(GROUPS).fill(15))
    expect(minutes.map(({ count }) => count)).toEqual(Array<number>(GROUPS).fill(15))
  })

  test('returns a batch to the broker when the commit fails', async () => {
    const source = new ListSource(many(5, 1))
    await pool.query('alter table redrive_catalog.group_hour rename to gone')
    const error = await refusal(made.ingest(source))
    await pool.query('alter table redrive_catalog.gone rename to group_hour')
    expect(error.message).toContain('migrate(pool)')
    expect([source.released, source.abandoned]).toEqual([0, 5])
    expect((await counted()).letters).toEqual([])
    expect(await made.ingest(source)).toMatchObject({ added: 5 })
  })

  test('continues with the next batch until its signal is aborted', async () => {
    const stop = new AbortController()
    const source = new ListSource(many(100, 1))
    const drain = source.drain.bind(source)
    source.drain = (options) => {
      stop.abort()
      return drain(options)
    }
    expect(await made.ingest(source, { batch: 10, signal: stop.signal })).toMatchObject({
      added: 10,
    })
    expect(await source.depth()).toBe(90)
  })

  test('adds new dead letters of a batch that also has known ones', async () => {
    const all = many(50, 3)
    await made.ingest(new ListSource(all.filter((_, at) => at % 7 === 0)))
    expect(await made.ingest(new ListSource(all))).toMatchObject({ added: 42, known: 8 })
    const { letters, payloads, groups } = await counted()
    expect([letters.length, payloads.length]).toEqual([50, 50])
    expect(groups.reduce((sum, { count }) => sum + Number(count), 0)).toBe(50)
  })

  test('drains one batch at a time, with at most two batches in flight', async () => {
    const source = new ListSource(many(60, 2))
    const drain = source.drain.bind(source)
    let draining = 0
    const inHand = { now: 0, most: 0 }
    source.drain = async (options) => {
      expect(++draining).toBe(1)
      inHand.most = Math.max(inHand.most, ++inHand.now)
      const batch = await drain(options)
      draining--
      const release = async () => {
        await batch.release()
        inHand.now--
      }
      return { ...batch, release }
    }
    expect(await made.ingest(source, { batch: 10 })).toMatchObject({ added: 60 })
    expect([source.released, inHand]).toEqual([60, { now: 0, most: 2 }])
  })

  test('finishes started batches and drains no more when a batch fails', async () => {
    const source = new ListSource(many(60, 2))
    const drain = source.drain.bind(source)
    const { promise: hasFailed, resolve: fail } = Promise.withResolvers<void>()
    let drained = 0
    source.drain = async (options) => {
      const batch = await drain(options)
      const isSecond = ++drained === 2
      const release = async () => {
        if (isSecond) {
          fail()
          throw new Error('the broker is gone')
        }
        // No batch ends before the second one fails: later batches must not be drained.
        await hasFailed
        await batch.release()
      }
      return { ...batch, release }
    }
    expect((await refusal(made.ingest(source, { batch: 10 }))).message).toBe('the broker is gone')
    // One more batch was possibly being drained at that time.
    expect(drained).toBeLessThanOrEqual(3)
    // All batches except the second.
    expect(source.released).toBe((drained - 1) * 10)
    expect((await counted()).letters).toHaveLength(drained * 10)
  })

  test('reports a failed drain after the previous batch is released', async () => {
    const source = new ListSource(many(20, 2))
    const drain = source.drain.bind(source)
    let drained = 0
    source.drain = (options) =>
      ++drained === 2 ? Promise.reject(new Error('no broker')) : drain(options)
    expect((await refusal(made.ingest(source, { batch: 10 }))).message).toBe('no broker')
    expect([source.released, (await counted()).letters.length]).toEqual([10, 10])
  })

  test('creates one partition for each day, but none for a clock that is wrong by years', async () => {
    const day = 86_400_000
    const times = [
      NOW,
      NOW - 3 * day,
      NOW - 89 * day,
      NOW - 3_000 * day,
      NOW + 3_000 * day,
      -5,
      9e15,
    ]
    await made.ingest(new ListSource(times.map((at) => dead({ at }))))
    const places = await rows<{ place: string }>(
      pool,
      'select distinct tableoid::regclass::text as place from redrive_catalog.dead_letter order by 1',
    )
    expect(places.map(({ place }) => place.replace(/\d{8}$/, 'day'))).toEqual([
      'redrive_catalog.dead_letter_day',
      'redrive_catalog.dead_letter_day',
      'redrive_catalog.dead_letter_day',
      'redrive_catalog.dead_letter_default',
    ])
    expect((await counted()).letters).toHaveLength(times.length)
  })

  test('reads the dead letters of a real queue', async () => {
    const broker = new MemoryBroker()
    const history = [
      {
        number: 1,
        at: NOW,
        waitedMs: 0,
        class: 'schema',
        signature: '1-00000000000000bb',
        code: 'E1',
        type: 'SchemaError',
        message: 'no total',
        counted: true,
      },
    ] as const
    const { headers } = encodeHeaders({
      id: 'o-1',
      key: 'order 1',
      source: 'orders',
      replayId: undefined,
      cycle: { ...FIRST_CYCLE, attempts: 1, firstFailedAt: NOW, history },
      reason: 'not_retryable',
    })
    send(
      broker,
      deadLetterQueue('orders'),
      { total: null },
      { headers: { ...headers, trace: 't1' } },
    )
    const source = memorySource({ broker, queue: 'orders' })
    expect(await made.ingest(source)).toMatchObject({ added: 1 })
    expect(await source.depth()).toBe(0)
    const { deadLetters } = await made.deadLetters({ key: 'order 1' })
    expect(deadLetters).toMatchObject([
      {
        source: 'orders',
        class: 'schema',
        code: 'E1',
        message: 'no total',
        headers: { trace: 't1' },
      },
    ])
    const found = await made.deadLetter(deadLetters[0]?.id ?? '')
    expect(found?.preview).toEqual({ total: null })
    expect(Buffer.from(found?.drained.delivery.bytes ?? []).toString()).toBe('{"total":null}')
  })

  test('shows the whole text of a message that the broker dead-lettered, and no value of other texts', async () => {
    const texts = ['the broker dead-lettered it: rejected', 'order 4711 failed: dead-lettered it']
    const letters = texts.map((message, at) =>
      dead({ message, signature: `3-00000000000000f${at}` }),
    )
    await made.ingest(new ListSource(letters, 'titles'))
    const { groups } = await made.groups({ sources: ['titles'] })
    expect(new Set(groups.map(({ title }) => title))).toEqual(
      new Set(['the broker dead-lettered it: rejected', 'order <v> failed: <v> it']),
    )
  })

  test('puts failures into one shared group above the limit of groups', async () => {
    await made.ingest(new ListSource(many(1, 1)))
    await pool.query(`insert into redrive_catalog.failure_group
      (id, source_id, algorithm, signature, class, title, sample, first_seen_at, last_seen_at)
      select gen_random_uuid(), s.id, 1, n::text, 'unknown', '', '', now(), now()
        from redrive_catalog.source s, generate_series(1, 9998) n`)
    await made.ingest(new ListSource(many(10, 10)))
    const groups = await rows<{ signature: string; count: string }>(
      pool,
      'select signature, count from redrive_catalog.failure_group where count > 0 order by count',
    )
    expect(groups.map(({ count }) => Number(count))).toEqual([1, 1, 8])
    expect(groups[2]?.signature).toBe('overflow')
  })

  test('reports all problems of its options together', async () => {
    const error = await refusal(
      made.ingest(new ListSource([]), {
        batch: 0,
        retention: 'soon' as '1s',
        mask: ['card'],
        maxPayloadBytes: -1,
      }),
    )
    for (const name of ['batch', 'retention', 'mask', 'maxPayloadBytes'])
      expect(error.message).toContain(name)
  })
})
