import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Heap } from '../src/heap.ts'

const numbers = () => new Heap<number>((value) => value)

describe('Heap', () => {
  it('is empty at first', () => {
    const heap = numbers()
    expect([heap.size, heap.first, heap.pop()]).toEqual([0, undefined, undefined])
  })

  it('returns all values, smallest first', () => {
    fc.assert(
      fc.property(fc.array(fc.integer()), (values) => {
        const heap = numbers()
        for (const value of values) heap.push(value)
        expect(heap.size).toBe(values.length)
        const popped = values.map(() => heap.pop())
        expect(popped).toEqual(values.toSorted((one, other) => one - other))
        expect(heap.size).toBe(0)
      }),
    )
  })

  it('agrees with a sorted list for any sequence of push and pop', () => {
    const action = fc.oneof(fc.integer({ min: -50, max: 50 }), fc.constant('pop' as const))
    fc.assert(
      fc.property(fc.array(action, { maxLength: 200 }), (actions) => {
        const heap = numbers()
        const model: number[] = []
        for (const one of actions) {
          const [popped, expected] =
            one === 'pop' ? [heap.pop(), model.shift()] : [heap.push(one), void model.push(one)]
          model.sort((a, b) => a - b)
          expect(popped).toBe(expected)
          expect([heap.size, heap.first]).toEqual([model.length, model[0]])
          expect(heap.items().toSorted((a, b) => a - b)).toEqual(model)
        }
      }),
    )
  })

  it('orders by the key, not by the item', () => {
    const heap = new Heap<{ readonly name: string }>(({ name }) => -name.length)
    for (const name of ['a', 'ccc', 'bb']) heap.push({ name })
    expect([heap.pop()?.name, heap.pop()?.name, heap.pop()?.name]).toEqual(['ccc', 'bb', 'a'])
  })
})
