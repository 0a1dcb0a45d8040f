import { RedriveError } from '@redrive/core'
import type { DeadLetterSource } from '@redrive/runtime'
import { createClient } from '@redis/client'
import type { Job, Queue } from 'bullmq'
import type { Warn } from '../tls.ts'

const clientAt = (url: string) => createClient({ url })
export type RedisConnection = ReturnType<typeof clientAt>

/** Creates a client that connects until it succeeds, and connects again. */
export function connectRedis(url: string, where: string, warn: Warn | undefined): RedisConnection {
  const client = clientAt(url)
  // Without a listener, a lost connection ends the process.
  client.on('error', (error: Error) => warn?.(`${where}: ${error.message}`))
  // Each failure is an event, too.
  client.connect().catch(() => undefined)
  return client
}

/** Lets a source end its client. */
export function endsWith<S extends DeadLetterSource>(source: S, client: RedisConnection): S {
  const close = source.close.bind(source)
  source.close = async () => {
    try {
      await close()
    } finally {
      // Also when the server is down: the client would connect again forever.
      if (client.isOpen) client.destroy()
    }
  }
  return source
}

/** The methods of a queue of BullMQ that a replay needs. */
export interface LoadedQueue {
  readonly name: string
  toKey(type: string): string
  getJob(id: string): Promise<Job | undefined>
  add(name: string, data: unknown, options: object): Promise<unknown>
}

const DEFAULT_PREFIX = 'bull'

/** Returns a queue that loads BullMQ with the first replay: a server without queues of BullMQ does not need it. */
export function bullmqQueue(
  name: string,
  client: RedisConnection,
  prefix: string = DEFAULT_PREFIX,
): LoadedQueue {
  let loading: Promise<Queue> | undefined
  const load = async () => {
    const bullmq = await importBullmq()
    return new bullmq.Queue(name, { connection: client, prefix })
  }
  const queue = () => (loading ??= load())
  return {
    name,
    toKey: (type) => `${prefix}:${name}:${type}`,
    getJob: async (id) => (await queue()).getJob(id),
    add: async (...job) => (await queue()).add(...job),
  }
}

async function importBullmq() {
  try {
    return await import('bullmq')
  } catch (cause) {
    throw new RedriveError(
      'CAPABILITY_MISSING',
      'A replay of jobs needs the package "bullmq", which is not installed next to the server. Run: npm install bullmq',
      { cause },
    )
  }
}
