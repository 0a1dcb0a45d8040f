import { describe, expect, it } from 'vitest'
import { run } from '../src/run.ts'
import { MAX_ATTEMPTS, type MessageKind, type Scenario } from '../src/scenario.ts'

const KINDS: readonly MessageKind[] = ['good', 'flaky', 'slow', 'poison', 'business']

/** Returns one message of each kind and one process, with no fault except the one under test. */
function scenario(maxInlineDelay: '0ms' | '1s', hasInbox: boolean): Scenario {
  return {
    seed: 7,
    processes: 1,
    hasInbox,
    isOrdered: false,
    policy: {
      timeout: '1s',
      retry: {
        attempts: MAX_ATTEMPTS,
        backoff: { kind: 'exponential', base: '1s', cap: '20s' },
        maxInlineDelay: maxInlineDelay,
      },
    },
    longestDelayMs: 86_400_000,
    skewMs: [0],
    messages: KINDS.map((kind, index) => ({
      id: kind,
      kind,
      atMs: index * 50,
      lane: undefined,
      isSentTwice: false,
      ownFailures: 1,
      workMs: 20,
    })),
    faults: [],
  }
}

describe.each([
  ['hand-offs to the broker', '0ms', false],
  ['inline retries', '1s', false],
  ['the inbox', '1s', true],
] as const)('a process that dies at any await boundary, with %s', (_, maxInlineDelay, hasInbox) => {
  it('loses no message and repeats none without a reason', async () => {
    const base = scenario(maxInlineDelay, hasInbox)
    const { stepsUnderFaults: steps, violations } = await run(base)
    expect(violations).toEqual([])
    expect(steps).toBeGreaterThan(45)
    for (let step = 1; step <= steps; step++) {
      const result = await run({ ...base, faults: [{ kind: 'crashAtStep', step, process: 0 }] })
      expect({ step, violations: result.violations }).toEqual({ step, violations: [] })
      expect(
        result.history.facts.some((fact) => fact.what === 'died'),
        `step ${step} was reached`,
      ).toBe(true)
    }
  }, 180_000)
})
