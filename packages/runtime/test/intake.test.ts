import { describe, expect, it } from 'vitest'
import { delivery, scripted } from './fixtures.ts'

describe('a transport that delivers while its limit changes', () => {
  it('stays paused when the delivery is a suspect', async () => {
    const { clock, transport, start } = scripted()
    const ran: string[] = []
    let hasFailed = false
    await start(
      ({ id }) => {
        ran.push(id)
        if (id !== 'a' || hasFailed) return
        hasFailed = true
        throw new Error('once')
      },
      { order: 'lane', concurrency: 1, poison: { suspectDeliveries: 3, trials: 2 } },
    )
    const limit = transport.limit.bind(transport)
    transport.limit = (count) => {
      limit(count)
      // The retry of "a" waits in the process, so that the transport may deliver one more.
      if (count === 2) transport.deliver(delivery('suspect', { deliveryCount: 3 }))
    }
    transport.deliver(delivery('a'))
    await clock.settle()
    expect(ran).toEqual(['a', 'suspect'])
    const pausedAt = transport.log.indexOf('pause')
    expect(transport.log.indexOf('resume', pausedAt)).toBeGreaterThan(
      transport.log.indexOf('settle suspect'),
    )
  })
})
