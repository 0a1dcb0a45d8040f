import type { Delivery } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import { type ConsumeOptions, consume, Dependency } from '../src/index.ts'
import { delivery, PLAIN, ScriptedTransport, scripted, unreachable } from './fixtures.ts'

const ADAPTIVE: ConsumeOptions = { timeout: '1h', adaptiveConcurrency: {} }

/** A consumer whose messages `job…` run until the test ends them. Other messages do what `handle` does. */
function jobs(handle: (id: string) => void = () => undefined) {
  const { clock, transport, start } = scripted()
  const ends = new Map<string, () => void>()
  const ran: string[] = []
  return {
    clock,
    transport,
    ran,
    end: async (id: string) => {
      ends.get(id)?.()
      await clock.settle()
    },
    deliver: async (...deliveries: readonly (Delivery | string)[]) => {
      transport.deliver(...deliveries.map((one) => (typeof one === 'string' ? delivery(one) : one)))
      await clock.settle()
    },
    start: (options: ConsumeOptions) =>
      start(({ id }) => {
        ran.push(id)
        if (id.startsWith('job')) return new Promise<void>((resolve) => ends.set(id, resolve))
        return handle(id)
      }, options),
  }
}

describe('a job that runs for longer than a minute', () => {
  it('does not hold the only slot that a failure left to the adaptive limit', async () => {
    const { clock, ran, deliver, start } = jobs((id) => {
      if (id === 'bad') throw unreachable()
    })
    const consumer = await start({ ...ADAPTIVE, retry: { attempts: 1 } })
    await deliver('job', 'bad')
    expect(consumer.stats()).toMatchObject({ concurrencyLimit: 1, running: 1 })
    await deliver('a', 'b')
    await clock.advance('1m')
    expect(ran).toEqual(['job', 'bad'])
    await clock.advance('2s')
    expect(ran).toEqual(['job', 'bad', 'a', 'b'])
  })

  it('does not hold the only slot after a late success of another job', async () => {
    const { clock, ran, deliver, end, start } = jobs()
    await start(ADAPTIVE)
    await deliver('a', 'job 1')
    await clock.advance('40m')
    await end('job 1')
    await deliver('job 2', 'b')
    expect(ran).toEqual(['a', 'job 1', 'job 2'])
    await clock.advance('62s')
    expect(ran).toEqual(['a', 'job 1', 'job 2', 'b'])
  })

  it('holds a slot of the concurrency until it ends', async () => {
    const { clock, transport, ran, deliver, end, start } = jobs()
    await start({ ...ADAPTIVE, concurrency: 3, adaptiveConcurrency: { start: 2 } })
    expect(transport.log.at(-1)).toBe('limit 2')
    await deliver('job 1', 'job 2', 'job 3', 'job 4')
    expect(ran).toEqual(['job 1', 'job 2'])
    await clock.advance('62s')
    expect(ran).toEqual(['job 1', 'job 2', 'job 3'])
    expect(transport.log.at(-1)).toBe('limit 3')
    await clock.advance('10m')
    expect(ran).toHaveLength(3)
    await end('job 1')
    expect(ran).toEqual(['job 1', 'job 2', 'job 3', 'job 4'])
    await clock.advance('10m')
    await end('job 2')
    await deliver('job 5')
    expect(ran).toHaveLength(5)
    await deliver('job 6')
    expect(ran).toHaveLength(5)
  })

  it('is not one of the attempts in flight when a failure lowers the limit', async () => {
    const { clock, deliver, start } = jobs((id) => {
      if (id === 'bad') throw unreachable()
    })
    const consumer = await start({ ...ADAPTIVE, retry: { attempts: 1 } })
    await deliver('job 1', 'job 2', 'job 3', 'job 4')
    await clock.advance('62s')
    await deliver('bad')
    expect(consumer.stats()).toMatchObject({ concurrencyLimit: 1, running: 4 })
  })

  it('does not take the place of the probe after an outage', async () => {
    let isDown = true
    const { clock, ran, deliver, start } = jobs(() => {
      if (isDown) throw unreachable()
    })
    const consumer = await start({
      ...ADAPTIVE,
      retry: { attempts: 1 },
      random: () => 0.5,
      breaker: { trip: { kind: 'consecutive', failures: 2 }, minOpen: '90s', maxOpen: '90s' },
    })
    await deliver('job', 'x', 'y')
    expect(consumer.stats()).toMatchObject({ breaker: 'open', running: 1 })
    isDown = false
    await clock.advance('100s')
    await deliver('probe', 'z')
    expect(ran).toEqual(['job', 'x', 'y', 'probe', 'z'])
    expect(consumer.stats().breaker).toBe('closed')
  })

  it('lets other consumers of the dependency probe when it is the probe', async () => {
    const dependency = new Dependency('crm')
    const breaker = {
      trip: { kind: 'consecutive', failures: 1 },
      minOpen: '1s',
      maxOpen: '1s',
    } as const
    let isDown = true
    const first = jobs(() => {
      if (isDown) throw unreachable()
    })
    const transport = new ScriptedTransport()
    const options = { ...PLAIN, ...ADAPTIVE, breaker, dependency, clock: first.clock }
    await first.start({ ...ADAPTIVE, breaker, dependency })
    const other = await consume(transport, () => undefined, { ...options, logger: 'off' })
    await first.deliver('x')
    isDown = false
    await first.clock.advance('2s')
    await first.deliver('job')
    transport.deliver(delivery('a'), delivery('b'))
    await first.clock.advance('58s')
    expect(other.stats()).toMatchObject({ handled: 0, waiting: 2, breaker: 'halfOpen' })
    await first.clock.advance('4s')
    expect(other.stats()).toMatchObject({ handled: 2, breaker: 'closed' })
  })

  it('lets messages pass one at a time while hand-offs fail', async () => {
    const { clock, transport, ran, deliver, start } = jobs((id) => {
      if (id === 'bad') throw Object.assign(new Error('rejected'), { status: 422 })
    })
    transport.result = (_, { kind }) =>
      kind === 'deadLetter'
        ? { kind: 'refused', error: new Error('full'), isTooLarge: false }
        : { kind: 'done', destination: 'settled', truncated: 0 }
    const consumer = await start(ADAPTIVE)
    await deliver('job', 'bad')
    await clock.advance('30s')
    expect(consumer.stats().concurrencyLimit).toBe(1)
    await clock.advance('40s')
    await deliver('a', 'b')
    expect(ran).toEqual(['job', 'bad', 'a', 'b'])
  })
})

describe('a suspect behind a job', () => {
  const poison = { suspectDeliveries: 3, trials: 2 }
  const suspect = (id: string) => delivery(id, { deliveryCount: 3 })

  it('lets the others pass one at a time, and runs alone when the job has ended', async () => {
    const { clock, ran, deliver, end, start } = jobs()
    const consumer = await start({ timeout: '1h', concurrency: 7, poison })
    await deliver('job', suspect('suspect'), 'a', 'job 2', 'b')
    expect(ran).toEqual(['job'])
    await clock.advance('62s')
    expect(ran).toEqual(['job', 'a', 'job 2'])
    await end('job 2')
    expect(ran).toEqual(['job', 'a', 'job 2', 'b'])
    expect(consumer.stats()).toMatchObject({ running: 1, waiting: 1 })
    await end('job')
    expect(ran).toEqual(['job', 'a', 'job 2', 'b', 'suspect'])
  })

  it('waits for the timeout of an attempt at most before the others wait for it', async () => {
    const { clock, ran, deliver, end, start } = jobs()
    await start({ timeout: '10m', concurrency: 7, poison })
    await deliver('job 1')
    await clock.advance('9m')
    await deliver(suspect('suspect'), 'job 2')
    expect(ran).toEqual(['job 1', 'job 2'])
    await end('job 1')
    await clock.advance('9m')
    await deliver('a')
    expect(ran).toEqual(['job 1', 'job 2', 'a'])
    await clock.advance('61s')
    await deliver('b')
    expect(ran).toEqual(['job 1', 'job 2', 'a'])
    await end('job 2')
    expect(ran.slice(0, 4)).toEqual(['job 1', 'job 2', 'a', 'suspect'])
  })
})
