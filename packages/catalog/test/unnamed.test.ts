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
  /** Whether the message was drained before. */
  isAgain?: boolean
}

/** A queue of messages without stable ids. Returned messages are marked as redelivered, other messages are not. */
class NamelessSource extends ListSource implements DeadLetterSource {
  readonly waiting: Message[]
  /** Runs instead of the release. */
  onRelease: (() => Promise<void>) | undefined
  onDrain: (() => void) | undefined

  constructor(messages: readonly Message[], source = 'orders') {
    super([], source)
    this.waiting = messages.map((message) => ({ ...message }))
  }

  override async drain({ limit }: { readonly limit: number }): Promise<DrainedBatch> {
    const taken = this.waiting.splice(0, limit)
    const back = () => this.waiting.unshift(...taken.map((one) => ({ ...one, isAgain: true })))
    this.onDrain?.()
    return {
      deadLetters: taken.map(({ body, headers = {}, cycle = 1, isAgain = false }) =>
        dead({
          cycle,
          identity: isAgain ? 'generated_redelivered' : 'generated',
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

/** Moves the end of all holds 10 s back. */
const tenSecondsLater = () =>
  pool.query(
    `update redrive_catalog.unreleased set held_until = held_until - interval '10 seconds'`,
  )

const count = async (table: string) =>
  Number((await rows(pool, `select count(*) from redrive_catalog.${table}`))[0]?.['count'])

/** Ingests a batch that is committed but never released, as after a crash. */
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

describe('dead letters without a stable id', () => {
  test('are separate even with the same content, and leave no rows after their release', async () => {
    const queue = new NamelessSource([{ body: 'a' }, { body: 'a' }, { body: 'b' }])
    expect(await made.ingest(queue)).toMatchObject({ added: 3, known: 0 })
    expect(await made.ingest(new NamelessSource([{ body: 'a' }]))).toMatchObject({ added: 1 })
    expect([await count('dead_letter'), await count('unreleased')]).toEqual([4, 0])
  })

  test('are recognised, one to one, after a crash between commit and release', async () => {
    const queue = await crashed([{ body: 'a' }, { body: 'a' }, { body: 'b' }])
    expect(await count('dead_letter')).toBe(3)
    // One more with the same content, which was drained before but never committed.
    queue.waiting.push({ body: 'a', isAgain: true })
    expect(await made.ingest(queue)).toMatchObject({ added: 1, known: 3 })
    expect([await count('dead_letter'), await count('unreleased')]).toEqual([4, 0])
  })

  test('are still recognised after several crashes', async () => {
    const queue = await crashed([{ body: 'a' }, { body: 'a' }])
    const again = await crashed(queue.waiting)
    expect(await made.ingest(again, { batch: 1 })).toMatchObject({ added: 0, known: 2 })
    expect([await count('dead_letter'), await count('unreleased')]).toEqual([2, 0])
  })

  test('are new if they were returned before their commit', async () => {
    const queue = new NamelessSource([{ body: 'a', isAgain: true }])
    expect(await made.ingest(queue)).toMatchObject({ added: 1, known: 0 })
  })

  test('are new if they were never drained before, although one with the same content is not released', async () => {
    await crashed([{ body: 'a' }])
    expect(await made.ingest(new NamelessSource([{ body: 'a' }]))).toMatchObject({ added: 1 })
    expect(await count('dead_letter')).toBe(2)
  })

  test('are distinguished by source, cycle, body and headers', async () => {
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

  test('are not matched with dead letters that another process is about to release', async () => {
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

  test('are returned if the transaction took too long, and are recognised later', async () => {
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

  test('are released after a long wait for the hold of another process', async () => {
    const queue = await crashed([{ body: 'a' }])
    // Longer than the time limit for a release.
    await pool.query(
      `update redrive_catalog.unreleased set held_until = clock_timestamp() + interval '5500 milliseconds'`,
    )
    expect(await made.ingest(queue)).toMatchObject({ added: 0, known: 1 })
    expect(queue.abandoned).toBe(0)
    expect([await count('dead_letter'), await count('unreleased')]).toEqual([1, 0])
  }, 30_000)

  test('are added a second time and not lost if the hold of another process never ends', async () => {
    const queue = await crashed([{ body: 'a' }])
    await pool.query(`update redrive_catalog.unreleased set held_until = 'infinity'`)
    const now = vi.spyOn(performance, 'now')
    // The wait ends immediately.
    queue.onDrain = () => {
      queue.onDrain = undefined
      now.mockReturnValueOnce(performance.now() - 20_000)
    }
    expect(await made.ingest(queue)).toMatchObject({ added: 1, known: 0 })
    now.mockRestore()
    expect([await count('dead_letter'), await count('unreleased')]).toEqual([2, 1])
  })

  test('are deleted from the held rows by maintenance after one day', async () => {
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
