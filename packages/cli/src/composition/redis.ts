import type { PeekTarget } from '../peek/read-queue.ts'
import type { Certificates } from '../server/certificates.ts'

/** Opens the stream of dead letters with this key, or the failed jobs of a queue of BullMQ. */
export async function openRedis(
  { href }: URL,
  queue: string,
  tls: Certificates | undefined,
): Promise<PeekTarget> {
  const [{ createClient }, { bullmqSource, redisStreamSource }] = await Promise.all([
    import('@redis/client'),
    import('@redrive/redis'),
  ])
  const secure = tls === undefined ? {} : { tls: true as const, ...tls }
  const client = createClient({ url: href, socket: { ...secure, reconnectStrategy: false } })
  // The request that fails reports why.
  client.on('error', () => undefined)
  await client.connect()
  const [, slot = '', group = ''] = DEAD_LETTERS.exec(queue) ?? []
  const isStream = group !== ''
  const stream = /^\{[^}]*\}$/.test(slot) ? slot.slice(1, -1) : slot
  const source = isStream
    ? redisStreamSource({ client, stream, group })
    : bullmqSource({ client, queue: failedJobsOf(queue), lease: false })
  return {
    source,
    trace: undefined,
    missing: async () => {
      const key = isStream ? queue : failedJobsOf(queue).toKey('meta')
      return (await client.exists(key)) === 1 ? undefined : noRedisKey(queue, key)
    },
    close: async () => {
      await source.close()
      client.destroy()
    },
  }
}

/** The key of a stream of dead letters: `{orders}:billing:dlq`. */
const DEAD_LETTERS = /^(.*\{[^}]+\}.*?):([^:]+):dlq$/

/** Returns a queue of BullMQ, by its name or with its prefix. A peek reads its keys and needs no package of it. */
function failedJobsOf(queue: string) {
  const [prefix, name] = queue.includes(':') ? splitLast(queue) : ['bull', queue]
  const unused = () => Promise.reject(new Error('A peek changes no job.'))
  return { name, toKey: (type: string) => `${prefix}:${name}:${type}`, getJob: unused, add: unused }
}

function splitLast(text: string): readonly [string, string] {
  const at = text.lastIndexOf(':')
  return [text.slice(0, at), text.slice(at + 1)]
}

const noRedisKey = (queue: string, key: string) =>
  `"${queue}" does not exist: there is no key "${key}". Expected a queue of BullMQ such as "orders", or the key of a stream of dead letters such as "{orders}:billing:dlq".`
