import { afterEach, beforeEach, describe, expect, expectTypeOf, it, vi } from 'vitest'
import { until, within } from '../src/index.ts'

const never = () => new Promise<never>(() => undefined)

/** Returns the error of a wait, after this much time. */
async function failureAfter(ms: number, wait: Promise<unknown>): Promise<Error> {
  const failing = wait.then(
    () => new Error('It did not fail.'),
    (error: unknown) => error as Error,
  )
  await vi.advanceTimersByTimeAsync(ms)
  return failing
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
})

afterEach(() => {
  vi.useRealTimers()
})

describe('until', () => {
  it('returns the first value that is not false, null or undefined', async () => {
    const values = [undefined, null, false, 0]
    const found = until('a number', () => values.shift())
    await vi.advanceTimersByTimeAsync(30)
    expect(await found).toBe(0)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('accepts a probe that is sync or async, and a condition', async () => {
    expect(await until('a condition', () => true)).toBe(true)
    expect(await until('a later condition', async () => true)).toBe(true)
    expectTypeOf(until('a text', async () => 'a' as string | undefined)).resolves.toBeString()
    expectTypeOf(until('a condition', () => false as boolean)).resolves.toEqualTypeOf<true>()
  })

  it('calls the probe once per interval', async () => {
    const probe = vi.fn<() => boolean>(() => false)
    const failed = failureAfter(1_000, until('never', probe, { timeout: '1s', interval: '100ms' }))
    expect((await failed).message).toContain('never')
    expect(probe).toHaveBeenCalledTimes(11)
  })

  it('calls the probe rarely in a long wait, and ends the wait at most 5 % late', async () => {
    const times: number[] = []
    const probe = () => {
      times.push(performance.now())
      return false
    }
    await failureAfter(25_000, until('never', probe))
    const pauses = times.slice(1).map((time, index) => time - (times[index] ?? 0))
    expect(times.length).toBeLessThan(250)
    expect(pauses[0]).toBe(10)
    expect(Math.max(...pauses)).toBeLessThanOrEqual(251)
    const late = pauses.map(
      (pause, index) => pause / Math.max(200, (times[index] ?? 0) - (times[0] ?? 0)),
    )
    expect(Math.max(...late)).toBeLessThan(0.06)
  })

  it('waits for a value for which `accept` returns true', async () => {
    let count = 0
    const found = until('three', () => ({ count: ++count }), { accept: (seen) => seen.count === 3 })
    await vi.advanceTimersByTimeAsync(20)
    expect(await found).toEqual({ count: 3 })
  })

  it('reports the name, the time and the last value', async () => {
    const wait = until('two orders', () => ({ orders: ['a'] }), {
      timeout: '2s',
      accept: ({ orders }) => orders.length === 2,
    })
    expect((await failureAfter(2_000, wait)).message).toBe(
      "Timed out after 2s waiting for: two orders. Last value: { orders: [ 'a' ] }",
    )
  })

  it('calls a probe that throws again, and reports its last error', async () => {
    let calls = 0
    const back = until('the server', () => {
      calls += 1
      if (calls < 3) throw new Error('ECONNREFUSED')
      return 'up'
    })
    await vi.advanceTimersByTimeAsync(20)
    expect(await back).toBe('up')

    const cause = new Error('ECONNREFUSED')
    const gone = await failureAfter(
      25_000,
      until('the server', () => Promise.reject(cause)),
    )
    expect(gone.message).toBe(
      'Timed out after 25s waiting for: the server. Last error: Error: ECONNREFUSED',
    )
    expect(gone.cause).toBe(cause)
  })

  it('times out although the probe never returns', async () => {
    const failed = await failureAfter(5_001, until('an answer', never, { timeout: '5s' }))
    expect(failed.message).toBe(
      'Timed out after 5001ms waiting for: an answer. The call has not returned.',
    )
  })

  it('does not repeat a probe whose own wait timed out', async () => {
    const outer = until('outer', () => until('inner', () => false, { timeout: '1s' }))
    expect((await failureAfter(1_000, outer)).message).toContain('waiting for: inner')
  })

  it('rejects an invalid timeout', async () => {
    const timeout = 'soon' as '1s'
    await expect(until('it', () => true, { timeout })).rejects.toThrow('such as \'5s\', got "soon"')
  })

  it('clips a long value', async () => {
    const long = until('nothing', () => 'x'.repeat(9_000), { timeout: 0, accept: () => false })
    expect((await failureAfter(0, long)).message.length).toBeLessThan(1_200)
  })
})

describe('within', () => {
  it('returns the result of the work', async () => {
    expect(await within('a number', Promise.resolve(1))).toBe(1)
    expect(vi.getTimerCount()).toBe(0)
  })

  it('rejects with the error of the work', async () => {
    const error = new Error('refused')
    await expect(within('a number', Promise.reject(error))).rejects.toBe(error)
  })

  it('names the work that takes too long', async () => {
    const failed = await failureAfter(3_001, within('the close', never(), { timeout: '3s' }))
    expect(failed.message).toBe(
      'Timed out after 3s waiting for: the close. The call has not returned.',
    )
  })
})
