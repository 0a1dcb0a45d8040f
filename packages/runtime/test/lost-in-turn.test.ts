import { describe, expect, it } from 'vitest'
import { Dependency } from '../src/index.ts'
import { delivery, never, scripted, unreachable } from './fixtures.ts'

describe('a delivery that waits when the broker takes it back', () => {
  it('does not start when a handler ends in the same turn', async () => {
    const { clock, transport, start } = scripted()
    const started: string[] = []
    let end: () => void = () => undefined
    const consumer = await start(
      ({ id }) => {
        started.push(id)
        return new Promise<void>((resolve) => {
          end = resolve
        })
      },
      { concurrency: 1 },
    )
    const [a, b, c] = [delivery('a'), delivery('b'), delivery('c')]
    transport.deliver(a, b, c)
    await clock.settle()
    end()
    transport.receiver?.lost(a)
    transport.receiver?.lost(b)
    await clock.settle()
    expect(started).toEqual(['a', 'c'])
    expect(transport.decisions).toEqual([])
    expect(consumer.stats()).toMatchObject({ running: 1, waiting: 0, handled: 0, failed: 0 })
  })

  it('does not start when its broker delivers it again while its earlier run ends', async () => {
    const { clock, transport, start } = scripted()
    const started: string[] = []
    const ends: (() => void)[] = []
    const consumer = await start(({ id }) => {
      started.push(id)
      return new Promise<void>((resolve) => void ends.push(resolve))
    })
    const [first, second] = [delivery('a'), delivery('a')]
    transport.deliver(first)
    await clock.settle()
    transport.receiver?.lost(first)
    await clock.settle()
    transport.deliver(second)
    await clock.settle()
    ends[0]?.()
    transport.receiver?.lost(second)
    await clock.settle()
    expect(started).toEqual(['a'])
    expect(consumer.stats()).toMatchObject({ running: 0, waiting: 0 })
  })

  it('does not start when the handler before it closes the connection as it starts', async () => {
    const { clock, transport, start } = scripted()
    const dependency = new Dependency('payments')
    const started: string[] = []
    let isDown = true
    const c = delivery('c')
    await start(
      ({ id }) => {
        if (isDown) throw unreachable()
        started.push(id)
        if (id === 'b') transport.receiver?.lost(c)
        return never()
      },
      {
        dependency,
        random: () => 0.5,
        breaker: { trip: { kind: 'consecutive', failures: 1 }, minOpen: '10s', maxOpen: '10s' },
      },
    )
    transport.deliver(delivery('bad'))
    await clock.advance('10s')
    isDown = false
    transport.deliver(delivery('a'), delivery('b'), c)
    await clock.settle()
    expect(started).toEqual(['a'])
    dependency.restore()
    await clock.settle()
    expect(started).toEqual(['a', 'b'])
  })

  it.each([0, 1, 2, 3, 4, 5, 6, 7, 8])(
    'does not start as a suspect after its loss, %i microtasks after the pause of its trial',
    async (microtasks) => {
      const { clock, transport, start } = scripted()
      let isLost = false
      const startedLate: string[] = []
      await start(({ id }) => void (isLost && startedLate.push(id)), {
        poison: { suspectDeliveries: 2, trials: 5 },
      })
      const takeEffect = transport.holdPause()
      const suspect = delivery('suspect', { deliveryCount: 3 })
      transport.deliver(suspect)
      await clock.settle()
      takeEffect()
      for (let passed = 0; passed < microtasks; passed++) await Promise.resolve()
      isLost = true
      transport.receiver?.lost(suspect)
      await clock.settle()
      transport.deliver(delivery('next'))
      await clock.settle()
      expect(startedLate).toEqual(['next'])
    },
  )
})
