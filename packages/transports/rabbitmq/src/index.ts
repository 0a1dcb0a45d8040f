import {
  type RabbitMqOptions,
  type RabbitMqSinkOptions,
  type RabbitMqSourceOptions,
  resolveOptions,
  resolveSourceOptions,
} from './options.ts'
import { RabbitMqTransport } from './receive.ts'
import { RabbitMqSink } from './sink.ts'
import { RabbitMqSource } from './source.ts'

export { CAPABILITIES } from './capabilities.ts'
export type { RabbitMqDelivery } from './headers.ts'
export type {
  Connect,
  Purpose,
  RabbitMqOptions,
  RabbitMqSinkOptions,
  RabbitMqSourceOptions,
} from './options.ts'
export {
  deadLetterExchange,
  deadLetterQueue,
  delayQueue,
  type QueueSpec,
  type QueueType,
  quarantineQueue,
  replayedQueue,
  STEPS_MS,
  type Topology,
  topologyOf,
} from './topology.ts'
export type { RabbitMqSink, RabbitMqSource, RabbitMqTransport }

/** A transport on a RabbitMQ queue. */
export function rabbitmq(options: RabbitMqOptions): RabbitMqTransport {
  return new RabbitMqTransport(resolveOptions(options))
}

/** The control plane's side of a queue: its dead letters, or those of any queue you name. */
export function rabbitmqSource(options: RabbitMqSourceOptions): RabbitMqSource {
  return new RabbitMqSource(resolveSourceOptions(options))
}

/** Publishes events with proof that the broker has stored them: for `relay` of the runtime. */
export function rabbitmqSink(options: RabbitMqSinkOptions): RabbitMqSink {
  return new RabbitMqSink(options)
}
