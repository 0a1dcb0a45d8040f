import { Leases, type LeasesOptions } from '@redrive/runtime/internal'
import { FakeClock } from '@redrive/testing'
import { describe, expect, it, vi } from 'vitest'

const LEASE_MS = 30_000

function leasesWith(renew: LeasesOptions<string>['renew']) {
  const clock = new FakeClock()
  const renewed = vi.fn<LeasesOptions<string>['renew']>(renew)
  const onLost = vi.fn<(delivery: string) => void>()
  const onError = vi.fn<(error: unknown) => void>()
  const leases = new Leases({ leaseMs: LEASE_MS, renew: renewed, onLost, onError, clock })
  leases.start()
  return { clock, leases, renewed, onLost, onError }
}

const allOwned = async () => []

describe('leases of deliveries in flight', () => {
  it('are renewed three times per lease while a handler runs', async () => {
    const { clock, leases, renewed } = leasesWith(allOwned)
    leases.add('order 1')
    await clock.advance(LEASE_MS)
    expect(renewed.mock.calls).toEqual([[['order 1']], [['order 1']], [['order 1']]])
  })

  it('are not renewed for deliveries that are young or settled', async () => {
    const { clock, leases, renewed } = leasesWith(allOwned)
    leases.add('settled')
    await clock.advance(LEASE_MS / 4)
    leases.add('young')
    leases.delete('settled')
    await clock.advance(LEASE_MS / 12)
    expect(renewed).not.toHaveBeenCalled()
    await clock.advance(LEASE_MS / 3)
    expect(renewed.mock.calls).toEqual([[['young']]])
  })

  it('count from the time before the claim, not from the arrival of its response', async () => {
    const { clock, leases, renewed } = leasesWith(allOwned)
    await clock.advance(LEASE_MS / 3 - 1)
    leases.add('slow claim', clock.now() - LEASE_MS / 4)
    await clock.advance(1)
    expect(renewed.mock.calls).toEqual([[['slow claim']]])
  })

  it('report a delivery with another owner once, and keep the others', async () => {
    const { clock, leases, onLost } = leasesWith(async () => ['stolen'])
    for (const delivery of ['kept', 'stolen']) leases.add(delivery)
    await clock.advance(LEASE_MS)
    expect(onLost.mock.calls).toEqual([['stolen']])
    expect(leases.all()).toEqual(['kept'])
  })

  it('do not report a delivery that was settled during the renewal', async () => {
    const { promise, resolve } = Promise.withResolvers<readonly string[]>()
    const { clock, leases, onLost } = leasesWith(() => promise)
    leases.add('order 1')
    await clock.advance(LEASE_MS / 3)
    leases.delete('order 1')
    resolve(['order 1'])
    await clock.advance(0)
    expect(onLost).not.toHaveBeenCalled()
    expect(leases.size).toBe(0)
  })

  it('are renewed in time although a renewal gets no response', async () => {
    const { clock, leases, onLost } = leasesWith(async () => {
      if (renewals++ > 0) return []
      await new Promise<void>((resolve) => void clock.after(LEASE_MS / 5, resolve))
      throw new Error('no response')
    })
    let renewals = 0
    await clock.advance(LEASE_MS / 3 - LEASE_MS / 6 + 1)
    // Too young for the next renewal, so its first one is when half of the lease has passed.
    leases.add('order 1')
    await clock.advance(LEASE_MS)
    expect(onLost).not.toHaveBeenCalled()
    expect(renewals).toBeGreaterThan(1)
  })

  it('are renewed again after a failed renewal, which is reported', async () => {
    const error = new Error('read ECONNRESET')
    let isDown = true
    const { clock, leases, renewed, onError, onLost } = leasesWith(async () => {
      if (isDown) throw error
      return []
    })
    leases.add('order 1')
    await clock.advance(LEASE_MS / 3)
    expect(onError.mock.calls).toEqual([[error]])
    isDown = false
    await clock.advance(LEASE_MS / 3)
    expect(renewed).toHaveBeenCalledTimes(2)
    expect(leases.has('order 1')).toBe(true)
    expect(onLost).not.toHaveBeenCalled()
  })

  it('are lost when no renewal is confirmed before their end', async () => {
    const { clock, leases, onLost } = leasesWith(() => Promise.reject(new Error('read ECONNRESET')))
    leases.add('order 1')
    await clock.advance(LEASE_MS - 1)
    expect(onLost).not.toHaveBeenCalled()
    leases.add('order 2')
    await clock.advance(1)
    expect(onLost.mock.calls).toEqual([['order 1']])
    expect(leases.all()).toEqual(['order 2'])
    await clock.advance(LEASE_MS)
    expect(onLost.mock.calls).toEqual([['order 1'], ['order 2']])
  })

  it('are lost at their end while a renewal has no response', async () => {
    const { clock, leases, onLost } = leasesWith(() => new Promise(() => undefined))
    leases.add('order 1')
    await clock.advance(LEASE_MS / 2)
    leases.add('slow claim', clock.now() - LEASE_MS / 3)
    await clock.advance(LEASE_MS / 2 - 1)
    expect(onLost).not.toHaveBeenCalled()
    await clock.advance(1)
    expect(onLost.mock.calls).toEqual([['order 1']])
    await clock.advance(LEASE_MS / 6)
    expect(onLost.mock.calls).toEqual([['order 1'], ['slow claim']])
  })

  it('have no end in this process while the broker may have a decision about the delivery', async () => {
    const { clock, leases, onLost } = leasesWith(() => Promise.reject(new Error('read ECONNRESET')))
    leases.add('order 1')
    leases.decided('order 1')
    await clock.advance(LEASE_MS * 3)
    expect(onLost).not.toHaveBeenCalled()
    expect(leases.delete('order 1')).toBe(true)
    leases.add('order 1')
    await clock.advance(LEASE_MS)
    expect(onLost.mock.calls).toEqual([['order 1']])
  })

  it('start again when all are renewed on request', async () => {
    let isDown = true
    const { clock, leases, onLost } = leasesWith(async () => {
      if (isDown) throw new Error('read ECONNRESET')
      return []
    })
    leases.add('order 1')
    await clock.advance(LEASE_MS - 1)
    isDown = false
    await leases.renewAll()
    isDown = true
    await clock.advance(LEASE_MS - 1)
    expect(onLost).not.toHaveBeenCalled()
    await expect(leases.renewAll()).rejects.toThrow('read ECONNRESET')
    await clock.advance(1)
    expect(onLost.mock.calls).toEqual([['order 1']])
  })

  it('end with stop, also during a renewal', async () => {
    const { promise, reject } = Promise.withResolvers<readonly string[]>()
    const { clock, leases, renewed, onError } = leasesWith(() => promise)
    leases.add('order 1')
    await clock.advance(LEASE_MS / 3)
    leases.stop()
    reject(new Error('The client is closed.'))
    await clock.advance(LEASE_MS)
    expect(renewed).toHaveBeenCalledTimes(1)
    expect(onError).not.toHaveBeenCalled()
    expect(clock.pending).toBe(0)
  })
})
