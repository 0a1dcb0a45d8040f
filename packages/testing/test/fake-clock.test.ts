import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FakeClock } from '../src/index.ts'

describe('FakeClock', () => {
  it('does not move until the test advances it', async () => {
    const clock = new FakeClock({ now: 1_000 })
    const ran: number[] = []
    clock.after(5, () => ran.push(clock.now()))
    await clock.settle()
    expect([clock.now(), ran, clock.pending]).toEqual([1_000, [], 1])
    await clock.advance(4)
    expect(ran).toEqual([])
    await clock.advance('1ms')
    expect([clock.now(), ran, clock.pending]).toEqual([1_005, [1_005], 0])
  })

  it('runs timers by their time, those with the same time in the order they were set', async () => {
    const clock = new FakeClock({ now: 0 })
    const ran: string[] = []
    clock.after(20, () => ran.push('c'))
    clock.after(10, () => ran.push('a'))
    clock.after(10, () => ran.push('b'))
    await clock.advance(30)
    expect(ran).toEqual(['a', 'b', 'c'])
    expect(clock.now()).toBe(30)
  })

  it('runs any set of timers in order, each at its time', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(50), { maxLength: 30 }), async (delays) => {
        const clock = new FakeClock({ now: 0 })
        const ran: { readonly at: number; readonly index: number }[] = []
        for (const [index, delay] of delays.entries()) {
          clock.after(delay, () => ran.push({ at: clock.now(), index }))
        }
        await clock.advance(50)
        const expected = delays
          .map((at, index) => ({ at, index }))
          .sort((one, other) => one.at - other.at || one.index - other.index)
        expect(ran).toEqual(expected)
      }),
      { numRuns: 30 },
    )
  })

  it('lets promise continuations run between two timers', async () => {
    const clock = new FakeClock({ now: 0 })
    const order: string[] = []
    const chain = async (name: string) => {
      for (let step = 0; step < 20; step++) await Promise.resolve()
      order.push(name)
    }
    clock.after(1, () => void chain('first'))
    clock.after(1, () => order.push('second'))
    await clock.advance(1)
    expect(order).toEqual(['first', 'second'])
  })

  it('runs timers that timers set, when they are due within the same move', async () => {
    const clock = new FakeClock({ now: 0 })
    const ran: number[] = []
    const again = () => {
      ran.push(clock.now())
      clock.after(10, again)
    }
    clock.after(10, again)
    await clock.advance(35)
    expect(ran).toEqual([10, 20, 30])
    expect(clock.now()).toBe(35)
  })

  it('does not run cancelled timers', async () => {
    const clock = new FakeClock()
    const cancel = clock.after(1, () => expect.unreachable())
    clock.after(1, cancel)
    cancel()
    await clock.advance(5)
    expect(clock.pending).toBe(0)
  })

  it('is never early for a fractional delay', async () => {
    const clock = new FakeClock({ now: 0 })
    let at = 0
    clock.after(1.2, () => {
      at = clock.now()
    })
    await clock.advance(1)
    expect(at).toBe(0)
    await clock.advance(1)
    expect(at).toBe(2)
  })

  it('runs until a condition is true, and no further', async () => {
    const clock = new FakeClock({ now: 0 })
    let ticks = 0
    const tick = () => {
      ticks += 1
      clock.after(7, tick)
    }
    tick()
    await clock.runUntil(() => ticks === 4)
    expect(clock.now()).toBe(21)
  })

  it('rejects when no timer is left', async () => {
    await expect(new FakeClock().runUntil(() => false)).rejects.toThrow(/No timer is left/)
  })

  it('rejects after the given time', async () => {
    const clock = new FakeClock({ now: 0 })
    const again = () => void clock.after(100, again)
    again()
    await expect(clock.runUntil(() => false, { within: '1s' })).rejects.toThrow(/within 1000 ms/)
    expect(clock.now()).toBeLessThanOrEqual(1_000)
  })

  it('rejects with the error of a timer, and can continue', async () => {
    const clock = new FakeClock()
    let ran = false
    clock.after(1, () => {
      throw new Error('in a timer')
    })
    clock.after(1, () => {
      ran = true
    })
    await expect(clock.advance(1)).rejects.toThrow('in a timer')
    await clock.advance(1)
    expect(ran).toBe(true)
  })

  it('rejects a second concurrent move', async () => {
    const clock = new FakeClock()
    const moving = clock.advance(1)
    await expect(clock.advance(1)).rejects.toThrow(/already moving/)
    await moving
  })

  it('rejects an invalid duration', async () => {
    await expect(new FakeClock().advance(-1)).rejects.toThrow(/duration/)
  })

  it('stops an endless loop of timers without delay', async () => {
    const clock = new FakeClock()
    // Set from within, so that each would run at the same time forever.
    const again = () => void clock.after(0, again)
    clock.settle = () => Promise.resolve()
    again()
    await expect(clock.advance(1)).rejects.toThrow(/endless loop/)
  })
})
