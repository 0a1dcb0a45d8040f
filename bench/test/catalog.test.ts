import { describe, expect, test } from 'vitest'
import { bodyOf, GROUPS, groupOf, letterOf, listed } from '../src/catalog/letters.ts'

describe('dead letters for the catalog', () => {
  test('have a body of 1 KB that is JSON', () => {
    for (const number of [0, 7, 4_999_999]) {
      const body = bodyOf(number)
      expect(body).toHaveLength(1_024)
      expect(JSON.parse(body.toString())).toMatchObject({ order: { id: `o-${number}` } })
    }
  })

  test('are of all kinds, and a few kinds are most of them', () => {
    const counts = new Map<number, number>()
    for (let number = 0; number < 20_000; number++) {
      const group = groupOf(number)
      counts.set(group, (counts.get(group) ?? 0) + 1)
    }
    expect([...counts.keys()].sort((a, b) => a - b)).toEqual(
      Array.from({ length: GROUPS }, (_, at) => at),
    )
    expect((counts.get(0) ?? 0) / 20_000).toBeCloseTo(0.13, 1)
  })

  test('are each drained once, in order', async () => {
    const source = listed([0, 1, 2].map((number) => letterOf(number, 0)))
    const drained = async () =>
      (await source.drain({ limit: 2 })).deadLetters.map(({ delivery }) => delivery.id)
    expect([await drained(), await drained(), await drained()]).toEqual([
      ['m-0', 'm-1'],
      ['m-2'],
      [],
    ])
  })
})
