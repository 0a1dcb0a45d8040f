/**
 * A consumer process: `consume` on the transport under test, with a real effect and a separate
 * history.
 */
import { sqs } from '@redrive/sqs'
import { brokerProgram, runBroker } from '../harness/broker-consumer.ts'
import { clientAt, createQueue } from './broker.ts'
import type { SqsConsumerOptions } from './consumer-options.ts'
import { watchedClient } from './failpoints.ts'

const program = brokerProgram<SqsConsumerOptions>()
const { endpoint, lease, queues } = program.options
/** The default of the client. */
const MAX_ATTEMPTS = 3
const real = clientAt(endpoint, MAX_ATTEMPTS)
const client = watchedClient(real, program)

// It may start before the producer.
for (const queue of queues) await createQueue(real, queue)

await runBroker(program, (queue) => sqs({ client, queue, lease, wait: '1s', timeout: '5s' }))
