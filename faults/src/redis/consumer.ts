/**
 * A consumer process: `consume` on the transport under test, with a real effect and a separate
 * history.
 */
import { redisStream } from '@redrive/redis'
import { Redis } from 'ioredis'
import { brokerProgram, runBroker } from '../harness/broker-consumer.ts'
import { GROUP } from './broker.ts'
import type { RedisConsumerOptions } from './consumer-options.ts'
import { dyingAt } from './failpoints.ts'

const program = brokerProgram<RedisConsumerOptions>()
const { url, failpoint, lease, isResending } = program.options

const client = new Redis(url, {
  autoResendUnfulfilledCommands: isResending,
  maxRetriesPerRequest: null,
  retryStrategy: () => 100,
})
// The transport reports why a connection was lost.
client.on('error', () => undefined)

await runBroker(
  program,
  (stream) =>
    redisStream({
      client: failpoint === undefined ? client : dyingAt(client, failpoint, program.die),
      ...{ stream, lease, group: GROUP },
    }),
  async () => client.disconnect(),
)
