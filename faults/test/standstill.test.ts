import { afterEach, describe, expect, it, vi } from 'vitest'
import { type Span, stoodMs, watchStandstills } from '../src/standstill.ts'

afterEach(() => vi.restoreAllMocks())

/** What is told first when the beats of a server take so long, one after the other. */
async function firstTold(...beats: readonly (() => number)[]): Promise<number> {
  let now = 0
  vi.spyOn(performance, 'now').mockImplementation(() => now)
  const waiting = beats.values()
  const told = Promise.withResolvers<Span>()
  const end = watchStandstills(told.resolve, async () => {
    now += waiting.next().value?.() ?? 0
  })
  const { from, to } = await told.promise
  end()
  return to - from
}

describe('a standstill', () => {
  it('is told when a look is more than 200 ms late', async () => {
    expect(
      await firstTold(
        () => 300,
        () => 301,
      ),
    ).toBe(301)
  })

  it('is not a server that refuses', async () => {
    const refuses = () => {
      throw new Error('down')
    }
    expect(await firstTold(refuses, () => 1_000)).toBe(1_000)
  })
})

const standstills = [
  { from: 100, to: 300 },
  { from: 500, to: 1_000 },
]

describe('what was stood still of a time', () => {
  it('is the sum of all standstills in it', () => {
    expect(stoodMs({ from: 0, to: 2_000 }, standstills)).toBe(700)
  })

  it('has only the part of a standstill that is in it', () => {
    expect(stoodMs({ from: 200, to: 600 }, standstills)).toBe(200)
  })

  it('is nothing when all of them are before or after it', () => {
    expect(stoodMs({ from: 300, to: 500 }, standstills)).toBe(0)
    expect(stoodMs({ from: 0, to: 2_000 }, [])).toBe(0)
  })
})
