import { isRedriveError } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import { rabbitmq, rabbitmqSink, rabbitmqSource } from '../src/index.ts'

function problemsOf(call: () => unknown): readonly string[] {
  try {
    call()
  } catch (error) {
    if (isRedriveError(error, 'POLICY_INVALID')) return error.problems
    throw error
  }
  return []
}

const URL = "url: expected 'amqp://user:password@host:5672' or 'amqps://…', or a list of them"
const UNSET = '; probably the environment variable RABBITMQ_URL or AMQP_URL is not set'

describe('the options of RabbitMQ', () => {
  it.each([
    [undefined, 'undefined'],
    ['', "''"],
    [[undefined], 'an array'],
  ])('name the variable that is probably not set when the url is %j', (url, shown) => {
    const problem = `${URL}, got ${shown}${UNSET}`
    const options = { url: url as never, queue: 'orders' }
    expect(problemsOf(() => rabbitmq(options))).toEqual([problem])
    expect(problemsOf(() => rabbitmqSource(options))).toEqual([problem])
    expect(problemsOf(() => rabbitmqSink({ url: url as never }))).toEqual([problem])
  })

  it('are reported together, without the password of the url', () => {
    const options = {
      url: 'http://user:secret@host',
      queue: undefined,
      topology: 'create',
      queueType: 'stream',
      confirmTimeout: Number.NaN,
      connect: 'amqp',
      que: 'orders',
    }
    expect(() => rabbitmq(options as never)).toThrow(
      expect.objectContaining({
        code: 'POLICY_INVALID',
        message: [
          'The options of rabbitmq() are invalid:',
          'queue: expected the name of a queue, got undefined',
          "topology: expected 'declare' or 'adopt' or 'verify', got 'create'",
          `${URL}, got another text`,
          "confirmTimeout: expected a duration from 1ms to 1h such as '250ms', '5s' or '2m', got NaN",
          "connect: expected a function, got 'amqp'",
          "queueType: expected 'quorum' or 'classic', got 'stream'",
          'que: unknown option; known options: confirmTimeout, connect, laneOf, order, prefix, queue, queueType, topology, url',
        ].join('\n- '),
      }),
    )
  })

  it('are required', () => {
    const missing = ['queue: expected the name of a queue, got nothing', `${URL}, got nothing`]
    expect(problemsOf(() => rabbitmq(undefined as never))).toEqual(missing)
    expect(problemsOf(() => rabbitmqSource({} as never))).toEqual(missing)
  })

  it('of a source and a sink are checked as well', () => {
    const url = 'amqp://localhost'
    const source = { url, queue: 'orders', deadLetterQueues: [''], replayTo: 'topic' }
    expect(problemsOf(() => rabbitmqSource(source as never))).toEqual([
      "deadLetterQueues: expected a list of queues such as ['orders.dlq'], got an array",
      "replayTo: expected 'queue' or 'exchange', got 'topic'",
    ])
    expect(problemsOf(() => rabbitmqSink({ url, exchange: 1, routingKey: 2 } as never))).toEqual([
      'routingKey: expected a routing key, or a function that returns it, got 2',
      "exchange: expected the name of an exchange, or '' for the default exchange, got 1",
    ])
  })

  it('of the transport may be passed to the source', () => {
    const options = { url: 'amqp://localhost', queue: 'orders', topology: 'verify' } as const
    expect(problemsOf(() => rabbitmqSource(options))).toEqual([])
  })
})
