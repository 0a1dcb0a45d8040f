import { isRedriveError } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import { kafka, kafkaSink, kafkaSource } from '../src/index.ts'
import { withRedrive } from '../src/kafkajs/kafkajs.ts'

async function problemsOf(call: () => unknown): Promise<readonly string[]> {
  try {
    await call()
  } catch (error) {
    if (isRedriveError(error, 'POLICY_INVALID')) return error.problems
    throw error
  }
  return []
}

const BROKERS = "brokers: expected a list such as ['localhost:9092']"
const UNSET = '; probably the environment variable KAFKA_BROKERS is not set'

describe('the options of Kafka', () => {
  it.each([
    [undefined, `${BROKERS}, got undefined${UNSET}`],
    [[undefined], `${BROKERS}, got an array${UNSET}`],
    ['localhost:9092', `${BROKERS}, got 'localhost:9092'`],
    [[], `${BROKERS}, got an array`],
  ])('reject the brokers %j', async (brokers, problem) => {
    const options = { brokers: brokers as never, topic: 'orders', group: 'billing' }
    expect(await problemsOf(() => kafka(options))).toEqual([problem])
    expect(await problemsOf(() => kafkaSource(options))).toEqual([problem])
    const sink = { brokers: brokers as never, topic: 'orders' }
    expect(await problemsOf(() => kafkaSink(sink))).toEqual([problem])
  })

  it('are reported together', () => {
    const options = {
      brokers: ['localhost'],
      topic: undefined,
      group: '',
      order: 'key',
      handOff: 'once',
      from: 'start',
      topology: 'create',
      sessionTimeout: 0,
      drainTimeout: -1,
      confirmTimeout: 'soon',
      client: 'tls',
      consumerGroup: 'billing',
    }
    const duration = (from: string) =>
      `expected a duration from ${from} to 1h such as '250ms', '5s' or '2m'`
    expect(() => kafka(options as never)).toThrow(
      expect.objectContaining({
        code: 'POLICY_INVALID',
        message: [
          'The options of kafka() are invalid:',
          'topic: expected the name of a topic (letters, digits, dots, - or _), got undefined',
          "group: expected the name of a group (letters, digits, dots, - or _, because it is a part of topic names), got ''",
          `${BROKERS}, got an array`,
          `confirmTimeout: ${duration('1ms')}, got 'soon'`,
          "client: expected an object with options of @platformatic/kafka, got 'tls'",
          "handOff: expected 'atLeastOnce' or 'transactional', got 'once'",
          "topology: expected 'declare' or 'verify', got 'create'",
          `sessionTimeout: ${duration('1s')}, got 0`,
          "order: expected 'none' or 'lane', got 'key'",
          "from: expected 'earliest' or 'latest', got 'start'",
          `drainTimeout: ${duration('1ms')}, got -1`,
          'consumerGroup: unknown option; known options: brokers, client, confirmTimeout, drainTimeout, from, group, handOff, order, sessionTimeout, topic, topology',
        ].join('\n- '),
      }),
    )
  })

  it('of withRedrive are checked before anything is sent', async () => {
    expect(
      await problemsOf(() => withRedrive(() => undefined, { topic: 'orders' } as never)),
    ).toEqual([
      'group: expected the name of a group (letters, digits, dots, - or _, because it is a part of topic names), got undefined',
      'consumer: expected a consumer of kafkajs, got undefined',
      'producer: expected a producer of kafkajs, got undefined',
    ])
  })
})
