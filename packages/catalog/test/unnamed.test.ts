import { randomUUID } from 'node:crypto'
import type { DeadLetterSource, DrainedBatch } from '@redrive/runtime'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import { catalog } from '../src/index.ts'
import { dead, ListSource, migrated, refusal, rows } from './rig.ts'

const pool = await migrated('redrive_catalog_unnamed')
const made = catalog({ pool })

beforeEach(async () => {
  await pool.query(`truncate redrive_catalog.dead_letter, redrive_catalog.dead_letter_payload,
    redrive_catalog.failure_group, redrive_catalog.source_day, redrive_catalog.source,
    redrive_catalog.unreleased cascade`)
})

interface Message {
  readonly body: string
  readonly headers?: Readonly<Record<string, unknown>>
  readonly cycle?: number
  /** Was in hand before. */
  isAgain?: boolean
}

/** A queue of messages without names: whatever was in hand and is back says so, and nothing else. */
class NamelessSource extends ListSource implements DeadLetterSource {
  readonly waiting: Message[]
  /** Instead of the release. */
  onRelease: (() => Promise<void>) | undefined
  onDrain: (() => void) | undefined

  constructor(messages: readonly Message[], source = 'orders') {
    super([], source)
    this.waiting = messages.map((message) => ({ ...message }))
  }

  override async drain({ most }: { readonly most: number }): Promise<DrainedBatch> {
    const taken = this.waiting.splice(0, most)
    const back = () => this.waiting.unshift(...taken.map((one) => ({ ...one, isAgain: true })))
    this.onDrain?.()
    return {
      deadLetters: taken.map(({ body, headers = {}, cycle = 1, isAgain = false }) =>
        dead({
          cycle,
          naming: isAgain ? 'unnamed_again' : 'unnamed',
          delivery: { id: randomUUID(), bytes: Buffer.from(body), headers },
        }),
      ),
      release: async () => {
        if (taken.length === 0) return
        try {
          await this.onRelease?.()
        } catch (error) {
          back()
          throw error
        }
      },
      abandon: async () => {
        this.abandoned += taken.length
        back()
      },
    }
  }
}

/** As far as the hold of a batch is concerned. */
const tenSecondsLater = () =>
  pool.query(
    `update redrive_catalog.unreleased set held_until = held_until - interval '10 seconds'`,
  )

const count = async (table: string) =>
  Number((await rows(pool, `select count(*) from redrive_catalog.${table}`))[0]?.['count'])

/** Ingests what is committed and never released, as when the process dies in between. */
async function crashed(messages: readonly Message[], source?: string): Promise<NamelessSource> {
  const queue = new NamelessSource(messages, source)
  queue.onRelease = async () => {
    throw new Error('died')
  }
  expect((await refusal(made.ingest(queue))).message).toBe('died')
  queue.onRelease = undefined
  await tenSecondsLater()
  return queue
}

describe('dead letters without a name', () => {
  test('are all other ones, however alike, and nothing is kept of them after their release', async () => {
    const queue = new NamelessSource([{ body: 'a' }, { body: 'a' }, { body: 'b' }])
    expect(await made.ingest(queue)).toMatchObject({ added: 3, known: 0 })
    expect(await made.ingest(new NamelessSource([{ body: 'a' }]))).toMatchObject({ added: 1 })
    expect([await count('dead_letter'), await count('unreleased')]).toEqual([4, 0])
  })

  test('are known again, one to one, after a crash between commit and release', async () => {
    const queue = await crashed([{ body: 'a' }, { body: 'a' }, { body: 'b' }])
    expect(await count('dead_letter')).toBe(3)
    // One more of the same content, which was in hand before and never committed.
    queue.waiting.push({ body: 'a', isAgain: true })
    expect(await made.ingest(queue)).toMatchObject({ added: 1, known: 3 })
    expect([await count('dead_letter'), await count('unreleased')]).toEqual([4, 0])
  })

  test('stay known when the crash repeats itself', async () => {
    const queue = await crashed([{ body: 'a' }, { body: 'a' }])
    const again = await crashed(queue.waiting)
    expect(await made.ingest(again, { batch: 1 })).toMatchObject({ added: 0, known: 2 })
    expect([await count('dead_letter'), await count('unreleased')]).toEqual([2, 0])
  })

  test('are new when they were given back before they were committed', async () => {
    const queue = new NamelessSource([{ body: 'a', isAgain: true }])
    expect(await made.ingest(queue)).toMatchObject({ added: 1, known: 0 })
  })

  test('never drained before are new, though one like it is not yet released', async () => {
    await crashed([{ body: 'a' }])
    expect(await made.ingest(new NamelessSource([{ body: 'a' }]))).toMatchObject({ added: 1 })
    expect(await count('dead_letter')).toBe(2)
  })

  test('are told apart by source, cycle, body and headers', async () => {
    await crashed([{ body: 'a', headers: { tenant: '1' } }])
    const others: readonly Message[] = [
      { body: 'a', headers: { tenant: '2' }, isAgain: true },
      { body: 'a', headers: { tenant: 1 }, isAgain: true },
      { body: 'b', headers: { tenant: '1' }, isAgain: true },
      { body: 'a', headers: { tenant: '1' }, cycle: 2, isAgain: true },
    ]
    expect(await made.ingest(new NamelessSource(others))).toMatchObject({ added: 4, known: 0 })
    const same: Message = { body: 'a', headers: { tenant: '1' }, isAgain: true }
    expect(await made.ingest(new NamelessSource([same], 'payments'))).toMatchObject({ added: 1 })
    expect(await made.ingest(new NamelessSource([same]))).toMatchObject({ added: 0, known: 1 })
  })

  test('are not taken for those that someone is about to release', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const { promise: releasing, resolve: isReleasing } = Promise.withResolvers<void>()
    const first = new NamelessSource([{ body: 'a' }])
    first.onRelease = () => {
      isReleasing()
      return released
    }
    const ingesting = made.ingest(first)
    await releasing
    const query = vi.spyOn(pool, 'query')
    const waiting = made.ingest(new NamelessSource([{ body: 'a', isAgain: true }]))
    const looks = expect.stringContaining('held_until > clock_timestamp() limit 1') as string
    await vi.waitFor(() => expect(query).toHaveBeenCalledWith(looks, expect.anything()), 15_000)
    query.mockRestore()
    expect(await count('dead_letter')).toBe(1)
    release()
    expect([await ingesting, await waiting]).toMatchObject([{ added: 1 }, { added: 1, known: 0 }])
    expect([await count('dead_letter'), await count('unreleased')]).toEqual([2, 0])
  })

  test('are given back when it took so long that someone else may have them, and are known then', async () => {
    const queue = new NamelessSource([{ body: 'a' }])
    const now = vi.spyOn(performance, 'now')
    queue.onDrain = () => {
      queue.onDrain = () => void tenSecondsLater()
      now.mockReturnValueOnce(performance.now() - 6_000)
    }
    let releases = 0
    queue.onRelease = async () => void releases++
    expect(await made.ingest(queue, { batch: 1 })).toMatchObject({ added: 1 })
    now.mockRestore()
    queue.onDrain = undefined
    await tenSecondsLater()
    expect(await made.ingest(queue)).toMatchObject({ added: 0 })
    expect([queue.abandoned, releases]).toEqual([1, 1])
    expect([await count('dead_letter'), await count('unreleased')]).toEqual([1, 0])
  })

  test('are released however long was waited until someone else let go of them', async () => {
    const queue = await crashed([{ body: 'a' }])
    // Longer than a release may take.
    await pool.query(
      `update redrive_catalog.unreleased set held_until = clock_timestamp() + interval '5500 milliseconds'`,
    )
    expect(await made.ingest(queue)).toMatchObject({ added: 0, known: 1 })
    expect(queue.abandoned).toBe(0)
    expect([await count('dead_letter'), await count('unreleased')]).toEqual([1, 0])
  }, 30_000)

  test('are added once more rather than lost where nobody lets go of them', async () => {
    const queue = await crashed([{ body: 'a' }])
    await pool.query(`update redrive_catalog.unreleased set held_until = 'infinity'`)
    const now = vi.spyOn(performance, 'now')
    // Its patience is over at once.
    queue.onDrain = () => {
      queue.onDrain = undefined
      now.mockReturnValueOnce(performance.now() - 20_000)
    }
    expect(await made.ingest(queue)).toMatchObject({ added: 1, known: 0 })
    now.mockRestore()
    expect([await count('dead_letter'), await count('unreleased')]).toEqual([2, 1])
  })

  test('upkeep forgets after a day what was never heard of again', async () => {
    await crashed([{ body: 'a' }])
    await made.maintain()
    expect(await count('unreleased')).toBe(1)
    await pool.query(
      `update redrive_catalog.unreleased set held_until = now() - interval '25 hours'`,
    )
    await made.maintain()
    expect(await count('unreleased')).toBe(0)
  })
})
