/**
 * A consumer process: `consume` on the transport under test, with a real effect and a separate
 * history.
 */
import { nats } from '@redrive/nats'
import { brokerProgram, runBroker } from '../harness/broker-consumer.ts'
import { CONSUMER, subjectsOf } from './broker.ts'
import type { NatsConsumerOptions } from './consumer-options.ts'
import { connectWith } from './failpoints.ts'

const program = brokerProgram<NatsConsumerOptions>()
const { servers, failpoint, lease, replicas } = program.options

await runBroker(program, (stream) =>
  nats({
    servers,
    stream,
    consumer: CONSUMER,
    subjects: subjectsOf(stream),
    lease,
    replicas,
    confirmTimeout: '5s',
    ...(failpoint === undefined ? {} : { connect: connectWith(servers, failpoint, program.die) }),
  }),
)
