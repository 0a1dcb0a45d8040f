import type { Duration } from '@redrive/core'
import { readOptions, withMethods } from '@redrive/core/internal'
import type { RedisClient } from '@redrive/redis-internal'
import type { BullmqJob } from './foreign.ts'
import { readClient } from './options.ts'

export interface BullmqSourceOptions {
  /** A connected client of `ioredis` or of `@redis/client`, on the server of the queue. The caller owns it. */
  readonly client: RedisClient
  /**
   * The queue: `new Queue('orders', { connection })` of your version of `bullmq`, which retries the jobs. The caller owns
   * it.
   */
  readonly queue: BullmqQueue
  /**
   * Whether a drain leases the jobs, so that other control planes skip them. With false, a drain
   * changes nothing: use it to show failed jobs. Default true.
   */
  readonly lease?: boolean
  /** Maximum wait for a response of the server ('1ms'–'1h', default '5s'). */
  readonly timeout?: Duration
}

/** The used part of a `Queue` of BullMQ. */
export interface BullmqQueue {
  readonly name: string
  toKey(type: string): string
  getJob(id: string): Promise<BullmqJob | undefined>
  add(name: string, data: unknown, options: object): Promise<unknown>
}

export interface ResolvedBullmqOptions {
  readonly client: RedisClient
  readonly queue: BullmqQueue
  readonly isLeasing: boolean
  readonly timeoutMs: number
}

export function resolveBullmqOptions(options: BullmqSourceOptions): ResolvedBullmqOptions {
  return readOptions('bullmqSource()', options, (top) => ({
    ...readClient(top),
    queue: top.required<BullmqQueue>('queue', QUEUE),
    isLeasing: top.boolean('lease', true),
  }))
}

const QUEUE = withMethods("a Queue of 'bullmq' such as new Queue('orders', { connection })", [
  'toKey',
  'getJob',
  'add',
])
