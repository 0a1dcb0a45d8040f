import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readForeignDeath } from '../src/foreign.ts'

const QUEUES = { source: 'orders', deadLetters: ['orders.dlq'] }
const read = (headers: Readonly<Record<string, unknown>>) => readForeignDeath(headers, QUEUES)

const at = (seconds: number) => ({ '!': 'timestamp', value: seconds })
const death = (queue: string, reason: string, address: object = {}) => ({
  queue,
  reason,
  count: 1,
  time: at(1_700_000_000),
  exchange: '',
  'routing-keys': [queue],
  ...address,
})

describe('x-death: the queue and the reason', () => {
  const cases: readonly (readonly [string, readonly object[], string | undefined, string])[] = [
    ['rejected', [death('orders', 'rejected')], 'orders', 'broker_rejected'],
    [
      'rejected after a delay',
      [death('orders', 'rejected'), death('orders.wait', 'expired')],
      'orders',
      'broker_rejected',
    ],
    [
      'retried through a delay queue, then moved by the application',
      [death('orders.wait', 'expired'), death('orders', 'rejected')],
      'orders',
      'broker_rejected',
    ],
    [
      'expired after a delay',
      [death('orders', 'expired'), death('orders.wait', 'expired')],
      'orders',
      'broker_expired',
    ],
    [
      'expired in the dead-letter queue afterwards',
      [death('orders.dlq', 'expired'), death('orders', 'maxlen')],
      'orders',
      'broker_maxlen',
    ],
    [
      'rejected from the dead-letter queue afterwards',
      [death('orders.dlq', 'rejected'), death('orders', 'expired')],
      'orders',
      'broker_expired',
    ],
    [
      'rejected in another queue that shares the dead-letter queue',
      [death('billing', 'delivery_limit'), death('orders', 'expired')],
      'billing',
      'broker_delivery_limit',
    ],
    [
      'only in the dead-letter queue',
      [death('orders.dlq', 'expired')],
      undefined,
      'broker_expired',
    ],
  ]

  it.each(cases)('of a message that was %s', (_, deaths, origin, reason) => {
    expect(read({ 'x-death': deaths })).toMatchObject({ origin, reason })
  })
})

describe('x-death: the address of the producer', () => {
  it('is that of the first death, which the broker moves when the queue is used again', () => {
    const deaths = [
      death('orders', 'rejected', { exchange: 'events', 'routing-keys': ['order.paid', 'audit'] }),
      death('orders.wait', 'expired', { exchange: 'wait' }),
    ]
    const first = { 'x-first-death-queue': 'orders', 'x-first-death-reason': 'rejected' }
    expect(read({ 'x-death': deaths, ...first }).address).toEqual({
      exchange: 'events',
      routingKey: 'order.paid',
      copies: ['audit'],
    })
  })

  it('is that of the oldest death without the headers of the first one', () => {
    const deaths = [
      death('orders', 'rejected'),
      death('orders.wait', 'expired', { exchange: 'in' }),
    ]
    expect(read({ 'x-death': deaths }).address).toEqual({
      exchange: 'in',
      routingKey: 'orders.wait',
    })
  })
})

describe('dead letters of libraries', () => {
  it('of Spring AMQP have the type and cause of the stack, and the address', () => {
    const stack = [
      'org.springframework.amqp.rabbit.support.ListenerExecutionFailedException: Listener failed',
      '\tat org.example.Listener.run(Listener.java:12)',
      'Caused by: java.lang.IllegalStateException: Order 17 is closed',
      '\tat org.example.Orders.close(Orders.java:44)',
    ].join('\n')
    const found = read({
      'x-exception-message': 'Order 17 is closed',
      'x-exception-stacktrace': stack,
      'x-original-exchange': 'events',
      'x-original-routingKey': 'order.paid',
    })
    expect(found).toMatchObject({
      reason: 'spring_amqp_failed',
      origin: undefined,
      address: { exchange: 'events', routingKey: 'order.paid' },
      cycle: { attempts: 1 },
    })
    expect(found.cycle.history[0]?.message).toContain('Order 17 is closed')
    expect(found.cycle.history[0]?.type).toContain('ListenerExecutionFailedException')
  })

  it('of Spring AMQP name the queue if the message was published directly to it', () => {
    const headers = {
      'x-exception-message': 'no',
      'x-original-exchange': '',
      'x-original-routingKey': 'billing',
    }
    expect(read(headers)).toMatchObject({ origin: 'billing' })
  })

  it('of MassTransit may contain an address that is not a valid URL', () => {
    const headers = { 'MT-Reason': 'fault', 'MT-Fault-InputAddress': 'rabbitmq://host/orders%zz' }
    expect(read(headers)).toMatchObject({ reason: 'masstransit_fault', origin: 'orders%zz' })
  })

  it('with an error header have its message, type, stack and retries', () => {
    const found = read({
      'x-error':
        '{"name":"StockError","message":"no sofa","stack":"StockError: no sofa\\n    at take (/app/stock.js:1:1)"}',
      'x-retry-count': 2,
      'x-death': [death('billing', 'rejected')],
    })
    expect(found).toMatchObject({
      reason: 'error_header',
      origin: 'billing',
      cycle: { attempts: 3 },
    })
    expect(found.cycle.history[0]).toMatchObject({ type: 'StockError', message: 'no sofa' })
  })

  it('with headers of a library and an error header use those of the library', () => {
    const headers = { 'x-exception-message': 'no', 'x-error': 'other' }
    expect(read(headers)).toMatchObject({ reason: 'spring_amqp_failed' })
  })

  it('use the queue of the broker if the library does not write one', () => {
    const headers = { 'x-exception-message': 'no', 'x-death': [death('billing', 'rejected')] }
    expect(read(headers)).toMatchObject({ reason: 'spring_amqp_failed', origin: 'billing' })
  })
})

describe('any other header', () => {
  const NAMES = [
    ...['x-death', 'x-first-death-queue', 'x-first-death-reason', 'x-first-death-exchange'],
    ...['MT-Reason', 'MT-Fault-InputAddress', 'MT-Fault-RetryCount', 'MT-Fault-Timestamp'],
    ...['NServiceBus.FailedQ', 'NServiceBus.Retries', 'NServiceBus.TimeOfFailure', 'rascal'],
    ...['x-exception-message', 'x-exception-stacktrace', 'x-original-exchange'],
    ...['x-error', 'x-error-message', 'error', 'x-error-type', 'x-error-stack', 'x-retry-count'],
  ]
  const FIELDS = [
    'queue',
    'reason',
    'count',
    'time',
    'exchange',
    'routing-keys',
    'error',
    'recovery',
  ]
  const anything = fc.anything({ maxDepth: 3, key: fc.constantFrom(...FIELDS) })

  it('never makes the reader throw', () => {
    const headers = fc.dictionary(fc.constantFrom(...NAMES), fc.oneof(anything, fc.array(anything)))
    fc.assert(
      fc.property(headers, (one) => {
        const { reason, cycle } = read(one)
        expect(reason).not.toBe('')
        expect(cycle.number).toBe(1)
      }),
      { numRuns: 3_000 },
    )
  })
})
