import { describe, expect, it } from 'vitest'
import { run } from '../src/run.ts'
import { scenarioOf } from '../src/scenario.ts'
import { shrink } from '../src/shrink.ts'

describe('a simulated run', () => {
  it('is a function of its seed', async () => {
    const [first, second] = [await run(scenarioOf(11)), await run(scenarioOf(11))]
    expect(first.history.lines()).toEqual(second.history.lines())
    expect(first.history.lines().length).toBeGreaterThan(50)
  })

  it('differs from seed to seed', async () => {
    const [first, second] = [await run(scenarioOf(11)), await run(scenarioOf(12))]
    expect(first.history.lines()).not.toEqual(second.history.lines())
  })

  // `pnpm simulate --seeds 2000` runs before each merge.
  it('keeps every promise for the first ten seeds', async () => {
    for (let seed = 1; seed <= 10; seed++) {
      const { violations } = await run(scenarioOf(seed))
      expect({ seed, violations }).toEqual({ seed, violations: [] })
    }
  })

  it.each([
    ['a process dies between a return and its response', 415461988],
    ['a process stops while it repeats the hand-off of two copies', 415470537],
  ])('explains every counted attempt when %s', async (_, seed) => {
    expect((await run(scenarioOf(seed))).violations).toEqual([])
  })
})

describe('shrinking', () => {
  it('removes everything that a violation does not need', async () => {
    // A dead-letter rule of the scenario makes a good message look dead-lettered.
    const scenario = {
      ...scenarioOf(3),
      policy: {
        ...scenarioOf(3).policy,
        classify: [{ class: 'business' as const, when: () => true }],
      },
    }
    const { violations } = await run(scenario)
    expect(violations.map((violation) => violation.invariant)).toContain('I8')
    const smallest = await shrink(scenario, 'I8')
    expect(smallest.messages.length).toBe(1)
    expect(smallest.faults.length).toBeLessThanOrEqual(1)
    expect((await run(smallest)).violations.map((violation) => violation.invariant)).toContain('I8')
  })
})
