import { describe, expect, it } from 'vitest'
import { type Body, bodyOf, plan, USUAL_MIX } from '../src/evidence/message.ts'

describe('a plan of messages', () => {
  it('contains the share of every kind in each hundred', () => {
    const counts = Map.groupBy(plan('run', 100, USUAL_MIX), ({ kind }) => kind)
    expect(counts.get('flaky')).toHaveLength(12)
    expect(counts.get('business')).toHaveLength(4)
    expect(counts.get('repeats')).toHaveLength(2)
    expect(counts.get('good')).toHaveLength(82)
  })

  it('names every message once', () => {
    const messages = plan('run', 1_000, USUAL_MIX)
    expect(new Set(messages.map(({ id }) => id)).size).toBe(1_000)
  })

  it('makes bodies of 200 bytes with instructions, and flaky messages that fail once or twice', () => {
    const bodies = plan('run', 1_000, { flaky: 100 }).map(
      (message) => JSON.parse(bodyOf(message).toString()) as Body,
    )
    expect(new Set(bodies.map(({ failures }) => failures))).toEqual(new Set([1, 2]))
    expect(bodyOf({ id: 'run/1', kind: 'good' })).toHaveLength(200)
  })
})
