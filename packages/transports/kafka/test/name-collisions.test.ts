import { describe, expect, it } from 'vitest'
import { alikePairs } from '../src/name-collisions.ts'
import { deadLetterTopic } from '../src/topology.ts'

describe('pairs of topic and group with the same names', () => {
  it.each([
    ['orders', 'billing', []],
    ['orders.eu', 'billing', [['orders', 'eu.billing']]],
    ['orders', 'eu.billing', [['orders.eu', 'billing']]],
    [
      'a.b',
      'c.d',
      [
        ['a', 'b.c.d'],
        ['a.b.c', 'd'],
      ],
    ],
    ['orders.', 'billing', [['orders', '.billing']]],
  ])('%s with %s: %j', (topic, group, pairs) => {
    const found = alikePairs({ topic, group })
    expect(found.map((pair) => [pair.topic, pair.group])).toEqual(pairs)
    for (const pair of found) {
      expect(deadLetterTopic(pair.topic, pair.group)).toBe(deadLetterTopic(topic, group))
    }
  })
})
