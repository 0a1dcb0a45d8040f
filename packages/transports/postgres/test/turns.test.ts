import { EventEmitter } from 'node:events'
import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import type { Pool } from 'pg'
import { describe, expect, test } from 'vitest'
import { postgres } from '../src/index.ts'

interface RecordedQuery {
  readonly text: string
  readonly values: readonly (readonly unknown[] | number)[]
}

/** A database with one message that responds in the next turn of the event loop. */
function oneMessage() {
  let left = 1
  let settled = 0
  const query = async ({ text, values }: RecordedQuery) => {
    await nextLoopTurn()
    const [finished, , , , most] = values
    if (Array.isArray(finished)) settled += finished.length
    const isTaken = text.includes('outbox_turn') && Number(most) > 0 && left-- > 0
    const row = ['id', '1', String(Date.now()), null, null, null, null, {}, '\\x', null]
    return { rows: isTaken ? [row] : [] }
  }
  const client = Object.assign(new EventEmitter(), { query, release: () => undefined })
  const pool = Object.assign(new EventEmitter(), {
    options: { max: 10 },
    connect: async () => client,
  })
  return { pool: pool as unknown as Pool, settled: () => settled }
}

describe('a finished delivery', () => {
  // At any time, also when a turn has just ended.
  test.each([0, 1, 2, 3, 4])('is sent immediately, after %i awaits', async (awaits) => {
    const { pool, settled } = oneMessage()
    const transport = postgres({ pool, queue: 'orders', listen: false, maintain: false })
    transport.limit(10)
    const { promise: finished, resolve } = Promise.withResolvers<void>()
    const handle = async () => {
      for (let time = 0; time < awaits; time++) await Promise.resolve()
    }
    transport.receive({
      deliver(delivery) {
        void handle().then(() => {
          void transport.enact(delivery, { kind: 'settle', reason: 'handled' })
          resolve()
        })
      },
      lost: () => undefined,
    })
    await finished
    // A few turns of the event loop; a claim by timer runs after 10 ms at the earliest.
    for (let time = 0; time < 6; time++) await nextLoopTurn()
    expect(settled()).toBe(1)
    await transport.close()
  })
})
