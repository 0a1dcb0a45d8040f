export type { BullmqQueue, BullmqSourceOptions } from './bullmq-options.ts'
export {
  type BullmqSource,
  bullmqSource,
} from './bullmq-source.ts'
export type {
  IoredisClient,
  NodeRedisClient,
  RedisClient,
  ScriptInput,
} from '@redrive/redis-internal'
export type { BullmqJob } from './foreign.ts'
export type { EntryRef, RedisStreamDelivery } from './delivery.ts'
export type {
  RedisStreamOptions,
  RedisStreamSinkOptions,
  RedisStreamSourceOptions,
} from './options.ts'
export { type RedisStreamSink, redisStreamSink } from './sink.ts'
export { type RedisStreamSource, redisStreamSource } from './source.ts'
export { type Topology, topologyOf } from './topology.ts'
export { type RedisStreamTransport, redisStream } from './transport.ts'
