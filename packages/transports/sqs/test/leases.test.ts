import { FakeClock } from '@redrive/testing'
import { describe, expect, it, vi } from 'vitest'
import { Leases, type LeasesOptions, type Renewal } from '../src/leases.ts'

const LEASE_MS = 30_000
const HOUR_MS = 3_600_000

const accept = (some: readonly Renewal<string>[]) => Promise.resolve(some.map(() => undefined))

function leasesWith(renew: LeasesOptions<string>['renew'] = accept, leaseMs = LEASE_MS) {
  const clock = new FakeClock()
  const renewed = vi.fn<LeasesOptions<string>['renew']>(renew)
  const onEnded = vi.fn<(one: string) => void>()
  const onError = vi.fn<(error: unknown) => void>()
  const leases = new Leases<string>({ leaseMs, renew: renewed, onEnded, onError, clock })
  const start = clock.now()
  const add = (one: string) => leases.add(one, clock.now())
  return { clock, leases, renewed, onEnded, onError, start, add }
}

describe('leases', () => {
  it('are renewed three times per lease, in batches of ten', async () => {
    const { clock, renewed, onEnded, add } = leasesWith()
    for (let number = 0; number < 12; number++) add(`order ${number}`)
    await clock.advance(LEASE_MS)
    expect(renewed.mock.calls.map(([some]) => some.length)).toEqual([10, 2, 10, 2, 10, 2])
    await clock.advance(10 * LEASE_MS)
    expect(onEnded).not.toHaveBeenCalled()
  })

  it('end on time while SQS does not respond, and a later renewal is sent anyway', async () => {
    const { clock, renewed, onEnded, add, leases } = leasesWith(() => new Promise(() => undefined))
    add('order 1')
    await clock.advance(LEASE_MS / 2)
    add('order 2')
    await clock.advance(LEASE_MS / 2 - 1)
    expect(onEnded).not.toHaveBeenCalled()
    await clock.advance(1)
    expect(onEnded.mock.calls).toEqual([['order 1']])
    expect(renewed.mock.calls.flatMap(([some]) => some.map(({ one }) => one))).toContain('order 2')
    // A renewal may take a third of the lease.
    expect(renewed.mock.calls[0]?.[1]).toBe(LEASE_MS / 3)
    await clock.advance(LEASE_MS / 2)
    expect(onEnded.mock.calls).toEqual([['order 1'], ['order 2']])
    expect(leases.size).toBe(0)
  })

  it('are renewed again after a failed renewal, from the time of the request', async () => {
    let isBroken = true
    const { clock, onEnded, onError, add } = leasesWith((some) =>
      isBroken ? Promise.reject(new Error('socket hang up')) : accept(some),
    )
    add('order 1')
    await clock.advance(LEASE_MS / 3)
    expect(onError).toHaveBeenCalledOnce()
    isBroken = false
    await clock.advance(LEASE_MS / 3)
    isBroken = true
    await clock.advance(LEASE_MS - 1)
    expect(onEnded).not.toHaveBeenCalled()
    await clock.advance(1)
    expect(onEnded).toHaveBeenCalledOnce()
  })

  it('that have ended before the message arrives are not added', async () => {
    const { clock, leases, start } = leasesWith()
    await clock.advance(LEASE_MS)
    expect(leases.add('order 1', start)).toBe(false)
    expect(leases.has('order 1')).toBe(false)
    expect(leases.add('order 2', start + 1)).toBe(true)
  })

  it('are never longer than the rest of the 12 hours that SQS allows, and end with them', async () => {
    const asked: number[] = []
    const started = { at: 0 }
    const { clock, onEnded, add, start } = leasesWith((some) => {
      asked.push(...some.map(({ forMs }) => clock.now() - started.at + forMs))
      return accept(some)
    }, 5 * HOUR_MS)
    started.at = start
    add('order 1')
    await clock.advance(12 * HOUR_MS - 1)
    expect(Math.max(...asked)).toBe(12 * HOUR_MS)
    expect(onEnded).not.toHaveBeenCalled()
    await clock.advance(1)
    expect(onEnded).toHaveBeenCalledOnce()
    expect(clock.pending).toBeLessThanOrEqual(1)
    await clock.advance(5 * HOUR_MS)
    expect(clock.pending).toBe(0)
  })
})
