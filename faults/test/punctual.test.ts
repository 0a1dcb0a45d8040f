import { describe, expect, it } from 'vitest'
import {
  checkPunctual,
  delayLateness,
  judgedOf,
  type Lateness,
  percentile,
  retryLateness,
  startLateness,
} from '../src/evidence/lateness.ts'
import { Story } from './evidence.ts'

/** Time advances by 1 ms with every fact of a story. */
const story = () =>
  new Story()
    .sent('a')
    .at(
      'consumer-1',
      { what: 'handler_started', id: 'a', attempt: 1 },
      { what: 'failed', id: 'a', attempt: 1 },
      { what: 'note', text: 'time passes' },
      { what: 'handler_started', id: 'a', attempt: 2 },
    )
    .evidence()

const undisturbed = (...ms: readonly number[]): Lateness =>
  ms.map((one) => ({ ms: one, isDisturbed: false }))

const disturbed = (...ms: readonly number[]): Lateness =>
  ms.map((one) => ({ ms: one, isDisturbed: true }))

const textsIn = (lateness: Lateness) => checkPunctual('retry', lateness, 10).map(({ text }) => text)

describe('lateness', () => {
  it('of a retry counts from the failure', () => {
    expect(retryLateness(story(), 1)).toEqual(undisturbed(1))
    expect(retryLateness(story(), 5)).toEqual(undisturbed(-3))
  })

  it('of a start counts from the acknowledgement, up to the first start only', () => {
    expect(startLateness(story(), () => true)).toEqual(undisturbed(1))
    expect(startLateness(story(), () => false)).toEqual([])
  })

  it('of a delay counts from the time when the message was sent', () => {
    expect(delayLateness(story(), () => true, 5)).toEqual(undisturbed(-3))
  })

  it('must not be below zero, nor above the bound for more than one in a hundred', () => {
    expect(textsIn(undisturbed(0, 1, 2))).toEqual([])
    expect(textsIn(undisturbed(-1, 1, 2))).toEqual(['retry ran 1 ms early'])
    const late = Array.from({ length: 100 }, (_, index) => (index < 98 ? 0 : 11))
    expect(textsIn(undisturbed(...late))).toEqual(['retry ran 11 ms late, at p99'])
  })

  it('may be bounded for every retry, and by the difference of two clocks', () => {
    const late = undisturbed(...Array.from({ length: 999 }, () => 0), 11)
    expect(checkPunctual('retry', late, 10)).toEqual([])
    expect(checkPunctual('retry', late, 10, { percent: 100 })).toMatchObject([
      { text: 'retry ran 11 ms late, at p100' },
    ])
    const early = undisturbed(-3)
    expect(checkPunctual('retry', early, 10, { clocksMs: 3 })).toEqual([])
    expect(checkPunctual('retry', early, 10, { clocksMs: 2 })).toHaveLength(1)
  })

  it('is disturbed when a stall overlaps the wait', () => {
    const retried = (from: number, to: number) =>
      new Story()
        .at(
          'consumer-1',
          { what: 'note', text: 'before' },
          { what: 'failed', id: 'a', attempt: 1 },
          { what: 'note', text: 'time passes' },
          { what: 'handler_started', id: 'a', attempt: 2 },
        )
        .at('consumer-2', { what: 'stood_still', from, to })
        .evidence()
    const isDisturbed = (from: number, to: number) =>
      retryLateness(retried(from, to), 0).map((one) => one.isDisturbed)
    expect(isDisturbed(0, 1)).toEqual([false])
    expect(isDisturbed(0, 2)).toEqual([true])
    expect(isDisturbed(2, 9)).toEqual([true])
    expect(isDisturbed(3, 9)).toEqual([false])
  })

  it('is not judged during a stall, unless it was on time or early', () => {
    const lateness = [...disturbed(-1, 10), ...undisturbed(11), ...disturbed(12)]
    expect(judgedOf(lateness, 10)).toEqual([...disturbed(-1, 10), ...undisturbed(11)])
    expect(textsIn(disturbed(-1, 0))).toEqual(['retry ran 1 ms early'])
  })

  it('must be known for at least half of the messages', () => {
    expect(textsIn([...undisturbed(0), ...disturbed(11)])).toEqual([])
    expect(textsIn([...undisturbed(0), ...disturbed(11, 12)])).toEqual([
      'only 1 of 3 can be judged because the machine was stalled: retry',
    ])
  })

  it('is reported by percentiles of sorted numbers', () => {
    expect(percentile([1, 2, 3, 4], 50)).toBe(3)
    expect(percentile([1, 2, 3, 4], 99)).toBe(4)
    expect(percentile([], 99)).toBe(0)
  })
})
