import { describe, expect, it } from 'vitest'
import {
  checkPunctual,
  delayLateness,
  percentile,
  retryLateness,
  startLateness,
} from '../src/punctual.ts'
import { Story } from './evidence.ts'

/** A moment passes with every fact of a story: each of these is 1 ms after the one before. */
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

const textsIn = (lateness: readonly number[]) =>
  checkPunctual('retry', lateness, 10).map(({ text }) => text)

describe('lateness', () => {
  it('of a retry counts from the failure', () => {
    expect(retryLateness(story(), 1)).toEqual([1])
    expect(retryLateness(story(), 5)).toEqual([-3])
  })

  it('of a start counts from the acknowledgement, and only to the first one', () => {
    expect(startLateness(story(), () => true)).toEqual([1])
    expect(startLateness(story(), () => false)).toEqual([])
  })

  it('of a delay counts from when the message was sent', () => {
    expect(delayLateness(story(), () => true, 5)).toEqual([-3])
  })

  it('must not be below zero, nor above the bound for more than one in a hundred', () => {
    expect(textsIn([0, 1, 2])).toEqual([])
    expect(textsIn([-1, 1, 2])).toEqual(['retry ran 1 ms early'])
    const late = Array.from({ length: 100 }, (_, index) => (index < 98 ? 0 : 11))
    expect(textsIn(late)).toEqual(['one retry in a hundred ran more than 11 ms late'])
  })

  it('is told by percentiles of sorted numbers', () => {
    expect(percentile([1, 2, 3, 4], 50)).toBe(3)
    expect(percentile([1, 2, 3, 4], 99)).toBe(4)
    expect(percentile([], 99)).toBe(0)
  })
})
