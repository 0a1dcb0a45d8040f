/**
 * A consumer process: `consume` on the transport under test, with a real effect and a separate
 * history.
 */
import { rabbitmq } from '@redrive/rabbitmq'
import type { ConsumeMessage } from 'amqplib'
import { keyIn } from '../evidence/check-keys.ts'
import { brokerProgram, runBroker } from '../harness/broker-consumer.ts'
import type { RabbitConsumerOptions } from './consumer-options.ts'
import { connectWith } from './failpoints.ts'

const program = brokerProgram<RabbitConsumerOptions>()
const { urls, failpoint, topology, classicQueues, order } = program.options

const laneOf = ({ properties }: ConsumeMessage) => keyIn(String(properties.messageId))

await runBroker(program, (queue) =>
  rabbitmq({
    url: urls,
    queue,
    ...(topology === undefined ? {} : { topology }),
    ...(classicQueues?.includes(queue) ? { queueType: 'classic' as const } : {}),
    ...(order === 'lane' ? { order, laneOf } : {}),
    ...(failpoint === undefined ? {} : { connect: connectWith(failpoint, program.die) }),
  }),
)
