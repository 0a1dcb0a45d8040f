import { resolvePolicy } from '@redrive/core'
import type { StormResult } from '@redrive/storm'
import { describe, expect, it } from 'vitest'
import {
  type BoundInput,
  calmLoad,
  impossibility,
  lateShare,
  neededFailures,
  probesOf,
  repeatsOf,
} from '../src/grid/bounds.ts'
import { judge, playCell } from '../src/grid/grid.ts'

const POLICY = resolvePolicy({ timeout: '1s' })

const input = (fields: Partial<BoundInput> = {}): BoundInput => ({
  policy: POLICY,
  processes: 10,
  arrivalsPerSecond: 20,
  capacityPerSecond: 30,
  outageMs: 30_000,
  ...fields,
})

const CELL = { arrivals: 20, consumers: 100, timeoutMs: 1_000, outageMs: 30_000 }

const result = (fields: Partial<StormResult> = {}): StormResult => ({
  messages: 2_500,
  attemptsPerMessage: 1.04,
  falseDeadLetters: 0,
  drainMs: 66_000,
  minimumMs: 60_000,
  peak: 1.5,
  load: [],
  ...fields,
})

describe('the bounds of a cell', () => {
  it('count the probes of an outage', () => {
    const fixed = resolvePolicy({ breaker: { minOpen: '10s', maxOpen: '10s' } })
    // 0.8 x 10 s between two of them.
    expect(probesOf(fixed, 8_000)).toBe(0)
    expect(probesOf(fixed, 8_001)).toBe(1)
    expect(probesOf(fixed, 30_000)).toBe(3)
  })

  it('count the repeats until five messages have arrived', () => {
    expect(repeatsOf(POLICY, 100)).toBe(4)
    expect(repeatsOf(POLICY, 1)).toBe(10)
  })

  it('grow with the processes, but not the repeats', () => {
    const repeats = repeatsOf(POLICY, 20)
    const one = neededFailures(input({ processes: 1 })) - repeats
    expect(one).toBe(5 + probesOf(POLICY, 30_000))
    expect(neededFailures(input()) - repeats).toBe(10 * one)
  })

  it('know the waits of random arrivals at one server', () => {
    // Without a wait longer than half a service: (1 - 2/3) · e^(2/3 · 1/2).
    expect(lateShare(1, 1.5, 1)).toBeCloseTo(1 - Math.exp(1 / 3) / 3, 10)
    expect(lateShare(1, 1.5, 0.5)).toBe(1)
    expect(lateShare(100, 150, 1)).toBe(0)
  })

  it('find the load with retries, or none below the capacity', () => {
    expect(calmLoad(1, 1.5, 1)).toBe(1.5)
    expect(calmLoad(5, 7.5, 1)).toBeCloseTo(5.03, 2)
  })

  it('show which cells no limit can serve', () => {
    const at = (arrivalsPerSecond: number, processes = 10) =>
      impossibility(
        input({ arrivalsPerSecond, capacityPerSecond: arrivalsPerSecond * 1.5, processes }),
      )
    expect(at(1)).toMatch(/^unstable without an outage: 53 %/)
    expect(at(5)).toMatch('10 / 7.5 = 1.33 s')
    expect(at(10)).toBeUndefined()
    expect(at(1, 1)).toBeUndefined()
  })
})

describe('the verdict of a cell', () => {
  const verdict = (fields: Partial<StormResult>, bound: Partial<BoundInput> = {}) =>
    judge(CELL, result(fields), input(bound)).verdict

  it('is ok at the goals, and short beyond one of them', () => {
    expect(verdict({})).toBe('ok')
    expect(verdict({ drainMs: 78_000 })).toBe('ok')
    expect(verdict({ drainMs: 78_001 })).toBe('SHORT')
    expect(verdict({ drainMs: undefined })).toBe('SHORT')
    expect(verdict({ falseDeadLetters: 1 / 2_500 })).toBe('SHORT')
  })

  it('allows the attempts that notice the outage, and no more', () => {
    const needed = neededFailures(input())
    const attemptsPerMessage = 1 + needed / 2_500
    expect(verdict({ attemptsPerMessage })).toBe('bound')
    expect(verdict({ attemptsPerMessage: attemptsPerMessage + 0.001 })).toBe('SHORT')
  })

  it('does not judge the drain of a cell that cannot drain', () => {
    const low = { arrivalsPerSecond: 5, capacityPerSecond: 7.5 }
    expect(verdict({ drainMs: undefined, attemptsPerMessage: 2 }, low)).toBe('cannot')
    expect(verdict({ falseDeadLetters: 0.0009 }, low)).toBe('cannot')
    expect(verdict({ falseDeadLetters: 0.001 }, low)).toBe('SHORT')
  })
})

// With the limit that grew at its minimum, this cell did not drain.
it('drains a low-rate storm', async () => {
  const { verdict, result: played } = await playCell({ ...CELL, arrivals: 10 })
  expect(verdict).toBe('bound')
  expect((played.drainMs ?? 0) / played.minimumMs).toBeLessThan(1.1)
})

it('an outage of an hour does not make a busy dependency look like a slow handler', async () => {
  const cell = { arrivals: 10, consumers: 100, timeoutMs: 1_000, outageMs: 3_600_000 }
  const { verdict, result } = await playCell(cell)
  expect({ verdict, falseDeadLetters: result.falseDeadLetters }).toEqual({
    verdict: 'ok',
    falseDeadLetters: 0,
  })
})
