import { type Decision, FIRST_CYCLE } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import { publish } from '../src/events.ts'
import { FailingTogether } from '../src/failing-together.ts'
import { delivery, never, ScriptedTransport, scripted, unreachable, world } from './fixtures.ts'

const HEALTHY = { status: 'up', reasons: [], isConnected: true, hung: 0 }

describe('FailingTogether', () => {
  const retry = (now: number) =>
    ({ kind: 'retryAt', dueAt: now + 1_000, cycle: FIRST_CYCLE }) as Decision

  it('is off when a message passed in the same second, whose time is rounded down', () => {
    const together = new FailingTogether()
    together.note(FIRST_CYCLE, retry(10_900), 10_900)
    expect(together.isOn(10_000, 11_000)).toBe(false)
  })

  it('is on when no message passed for a second before the last failure', () => {
    const together = new FailingTogether()
    together.note(FIRST_CYCLE, retry(11_000), 11_000)
    expect(together.isOn(10_000, 11_000)).toBe(true)
  })
})

describe('the health of a consumer', () => {
  it('is up while messages pass, with the calls of the dependency', async () => {
    const { clock, transport, start } = scripted()
    const consumer = await start(() => undefined, { dependency: 'crm', breaker: {} })
    transport.deliver(delivery('a'), delivery('b'))
    await clock.settle()
    expect(consumer.health()).toEqual({
      ...HEALTHY,
      assigned: undefined,
      lag: undefined,
      oldestUnproven: undefined,
      lastHandledAt: clock.now(),
      breaker: {
        dependency: 'crm',
        phase: 'closed',
        calls: 2,
        failures: 0,
        rejections: 0,
        transitions: 0,
        lastFailure: undefined,
      },
    })
  })

  it('is down without a connection, and up when it is back', async () => {
    const { clock, transport, start } = scripted()
    const consumer = await start(() => undefined)
    const { source } = transport
    publish({ type: 'connection_lost', at: clock.now(), source, error: new Error('reset') })
    expect(consumer.health()).toMatchObject({
      status: 'down',
      reasons: ['It has no connection to the broker.'],
      isConnected: false,
    })
    publish({ type: 'connection_restored', at: clock.now(), source })
    publish({ type: 'connection_lost', at: clock.now(), source: 'other', error: new Error('no') })
    expect(consumer.health()).toMatchObject(HEALTHY)
  })

  it('is degraded while topics are missing, and names them', async () => {
    const { clock, transport, start } = scripted()
    const consumer = await start(() => undefined)
    const [at, { source }] = [clock.now(), transport]
    const missing = (where: string, problem: string | undefined) =>
      publish({ type: 'topic_missing', at, source, where, problem })
    missing('orders.billing.retry.1s', 'It does not exist.')
    missing('orders.billing.retry.5s', 'It does not exist.')
    missing('orders.billing.retry.1s', undefined)
    expect(consumer.health()).toMatchObject({
      status: 'degraded',
      reasons: ['These topics do not exist: orders.billing.retry.5s.'],
    })
    missing('orders.billing.retry.5s', undefined)
    expect(consumer.health()).toMatchObject(HEALTHY)
  })

  it('ignores the connection and the assignment of another consumer of the same source', async () => {
    const { clock, transport, start } = scripted()
    const consumer = await start(() => undefined)
    const [at, { source }] = [clock.now(), transport]
    const other = new ScriptedTransport()
    publish({ type: 'connection_lost', at, source, error: new Error('reset') }, other)
    publish({ type: 'assignment_changed', at, source, assigned: 0 }, other)
    expect(consumer.health()).toMatchObject({ ...HEALTHY, assigned: undefined })
    publish({ type: 'assignment_changed', at, source, assigned: 3 }, transport)
    expect(consumer.health()).toMatchObject({ ...HEALTHY, assigned: 3 })
  })

  it('has the lag that the transport knows', async () => {
    const { transport, start } = scripted()
    const consumer = await start(() => undefined)
    expect(consumer.health().lag).toBeUndefined()
    Object.assign(transport, { lag: () => 7 })
    expect(consumer.health().lag).toBe(7)
  })

  it('is down when no partition is assigned', async () => {
    const { clock, transport, start } = scripted()
    const consumer = await start(() => undefined)
    const assign = (assigned: number) =>
      publish({ type: 'assignment_changed', at: clock.now(), source: transport.source, assigned })
    assign(0)
    expect(consumer.health()).toMatchObject({
      status: 'down',
      reasons: ['No partition is assigned to it.'],
      assigned: 0,
    })
    assign(2)
    expect(consumer.health()).toMatchObject({ ...HEALTHY, assigned: 2 })
  })

  it('shows the breaker: its phases, rejections, transitions and the last failure', async () => {
    const { clock, transport, start } = scripted()
    let isDown = true
    const consumer = await start(
      () => {
        if (isDown) throw unreachable()
      },
      {
        dependency: 'payments',
        concurrency: 1,
        random: () => 0.5,
        breaker: { trip: { kind: 'consecutive', failures: 2 }, minOpen: '10s', maxOpen: '10s' },
        retry: { backoff: { kind: 'fixed', delay: '1h' } },
      },
    )
    transport.deliver(delivery('a'), delivery('b'), delivery('c'))
    await clock.settle()
    const failedAt = clock.now()
    expect(consumer.health()).toMatchObject({
      status: 'down',
      reasons: ['The breaker of "payments" is open.'],
      breaker: {
        phase: 'open',
        calls: 2,
        failures: 2,
        // The message that opened it, and the message that waited.
        rejections: 2,
        transitions: 1,
        lastFailure: {
          at: failedAt,
          class: 'transient',
          type: 'Error',
          code: 'ECONNREFUSED',
          message: 'connect ECONNREFUSED',
        },
      },
    })
    await clock.advance('10s')
    expect(consumer.health()).toMatchObject({
      status: 'degraded',
      reasons: ['The breaker of "payments" is half-open.'],
    })
    isDown = false
    for (const id of ['d', 'e', 'f', 'g', 'h']) {
      transport.deliver(delivery(id))
      await clock.settle()
    }
    expect(consumer.health()).toMatchObject({
      ...HEALTHY,
      breaker: { phase: 'closed', calls: 7, failures: 2, transitions: 2 },
    })
    consumer.dependency.isolate()
    expect(consumer.health()).toMatchObject({
      status: 'down',
      reasons: ['"payments" is isolated.'],
    })
    consumer.dependency.restore()
  })

  it('is degraded while a handler does not end, and down when all slots are taken', async () => {
    const { clock, transport, start } = scripted()
    const consumer = await start(never, { timeout: '1s', grace: '1s', concurrency: 2 })
    transport.deliver(delivery('a'))
    await clock.advance('5s')
    expect(consumer.health()).toMatchObject({
      status: 'degraded',
      reasons: ['1 handler does not end.'],
      hung: 1,
    })
    transport.deliver(delivery('b'))
    await clock.advance('5s')
    expect(consumer.health()).toMatchObject({
      status: 'down',
      reasons: ['Handlers that do not end hold every slot.'],
      hung: 2,
    })
  })

  it('shows the message that fails for the longest time without a known cause', async () => {
    const { clock, transport, start } = scripted({ ordering: 'lane' })
    let isDown = true
    const consumer = await start(
      () => {
        if (isDown) throw unreachable()
      },
      {
        order: 'lane',
        outage: {},
        random: () => 0.5,
        retry: { backoff: { kind: 'fixed', delay: '10s' } },
      },
    )
    transport.deliver(delivery('a'))
    await clock.settle()
    const since = clock.now()
    await clock.advance('15s')
    transport.deliver(delivery('b'))
    await clock.advance('15s')
    expect(consumer.health()).toMatchObject({
      status: 'degraded',
      reasons: ['A message fails, and the cause is not known.'],
      oldestUnproven: { deliveryId: 'a', since },
    })
    isDown = false
    await clock.advance('2m')
    expect(consumer.health()).toMatchObject({ ...HEALTHY, oldestUnproven: undefined })
  })

  it('is degraded while several messages fail and none passes, without a breaker', async () => {
    const { clock, send, start } = world()
    let isDown = true
    const consumer = await start(
      () => {
        if (isDown) throw unreachable()
      },
      {
        breaker: 'off',
        outage: {},
        random: () => 0.5,
        dependency: 'payments without a breaker',
      },
    )
    const reason =
      'Several messages fail and none passes: "payments without a breaker" may be unhealthy.'
    send({})
    await clock.settle()
    expect(consumer.health()).toMatchObject(HEALTHY)
    const reports: string[] = []
    for (let minute = 0; minute < 60; minute++) {
      send({})
      await clock.advance('1m')
      const { status, reasons } = consumer.health()
      reports.push(`${status} ${reasons.includes(reason)}`)
    }
    expect(reports.slice(10).filter((report) => report !== 'degraded true')).toEqual([])
    isDown = false
    // A success is known to a second.
    await clock.advance('1s')
    send({})
    await clock.settle()
    expect(consumer.health().reasons).not.toContain(reason)
  })

  it('forgets several messages that failed when another process has them', async () => {
    const { clock, transport, start } = scripted()
    const consumer = await start(
      () => {
        throw unreachable()
      },
      { breaker: 'off', outage: {}, retry: { backoff: { kind: 'fixed', delay: '10s' } } },
    )
    for (let count = 0; count < 10; count++) transport.deliver(delivery(`m${count}`))
    await clock.settle()
    expect(consumer.health().status).toBe('degraded')
    // The copies with the failures go to the broker, which does not deliver them here again.
    await clock.advance('6m')
    expect(consumer.health()).toMatchObject(HEALTHY)
  })

  it('is degraded in a flood, and down when it pauses the consumer', async () => {
    const { clock, transport, start } = scripted()
    const bad = () => {
      throw new RangeError('no')
    }
    const flood = { burst: 1, perMinute: 1 }
    const consumer = await start(bad, { retry: { attempts: 1 }, flood, concurrency: 1 })
    const deliver = async (count: number) => {
      for (let index = 0; index < count; index++) {
        transport.deliver(delivery(`m${index}`))
        await clock.settle()
      }
    }
    await deliver(2)
    const reasons = [
      'Many messages fail in the same way, and their dead letters are written slowly.',
    ]
    expect(consumer.health()).toMatchObject({ status: 'degraded', reasons })
    await deliver(999)
    expect(consumer.health()).toMatchObject({ status: 'down', reasons })
    expect(consumer.stats().isPaused).toBe(true)
  })

  it('is down while paused and after a stop', async () => {
    const { clock, start } = scripted()
    const consumer = await start(() => undefined)
    consumer.pause()
    expect(consumer.health()).toMatchObject({ status: 'down', reasons: ['It was paused.'] })
    consumer.resume()
    expect(consumer.health()).toMatchObject(HEALTHY)
    const stopped = consumer.stop()
    await clock.advance('1m')
    await stopped
    expect(consumer.health()).toMatchObject({
      status: 'down',
      reasons: ['It is stopping or has stopped.'],
    })
  })
})
