import { describe, expect, test } from 'vitest'
import { createByteBudget } from '../src/ingest/byte-budget.ts'
import { catalog } from '../src/index.ts'
import { dead, ListSource, migrated } from './rig.ts'

const MIB = 1_048_576
const bodies = (count: number, bytes: number) =>
  Array.from({ length: count }, () => dead({ delivery: { bytes: Buffer.alloc(bytes) } }))

describe('the byte budget', () => {
  test('grows to the batch size for small messages, in steps', () => {
    const budget = createByteBudget({ maxBytes: 64 * MIB, batch: 500 })
    const limits: number[] = []
    for (let step = 0; step < 4; step++) {
      limits.push(budget.limit())
      budget.hold(bodies(budget.limit(), 100))()
    }
    expect(limits).toEqual([10, 80, 500, 500])
  })

  test('counts all batches in memory, and always allows one message', () => {
    const budget = createByteBudget({ maxBytes: 10 * MIB, batch: 500 })
    const free = budget.hold(bodies(8, MIB))
    expect([budget.isFull, budget.limit()]).toEqual([false, 1])
    const freeSecond = budget.hold(bodies(2, MIB))
    expect([budget.isFull, budget.limit()]).toEqual([true, 1])
    free()
    expect([budget.isFull, budget.limit()]).toEqual([false, 7])
    freeSecond()
    budget.hold(bodies(1, 20 * MIB))()
    expect([budget.isFull, budget.limit()]).toEqual([false, 1])
  })
})

test('an ingest of large bodies never holds more than the budget, and stores all', async () => {
  const pool = await migrated('redrive_catalog_byte_budget')
  const source = new ListSource(bodies(60, MIB), 'large')
  let held = 0
  let most = 0
  const drain = source.drain.bind(source)
  source.drain = async (options) => {
    const batch = await drain(options)
    const { length } = batch.deadLetters
    held += length
    most = Math.max(most, held)
    const release = async () => {
      await batch.release()
      held -= length
    }
    return { ...batch, release }
  }
  const result = await catalog({ pool }).ingest(source, { maxBytesInFlight: 10 * MIB })
  expect(result.added).toBe(60)
  expect(most).toBeLessThanOrEqual(10)
})
