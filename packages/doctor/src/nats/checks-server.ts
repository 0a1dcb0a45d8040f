import type { Check } from '../finding.ts'
import type { NatsFacts } from './facts.ts'
import { neededStreams, placedIn } from './look.ts'

/** 3 replicas: with fewer, messages that only the memory of a server has are lost when that machine loses power. */
export const MIN_REPLICAS = 3
/** 90 %: an operator can still act. */
const FULL = 0.9
/** 2.12: the first server with message schedules, which delay retries. */
const OLDEST = [2, 12] as const

export const SERVER_CHECKS: readonly Check<NatsFacts>[] = [
  {
    id: 'nats.sync-interval',
    severity: 'loss',
    caps: 'C',
    looksFor: 'streams with fewer than three replicas on a server that calls fsync later',
    why: 'The server confirms messages before they are on disk. When its machine loses power, the confirmed messages of this time are lost.',
    fix: 'set sync_interval: always in the block jetstream of nats-server.conf, or give the streams three replicas',
    hits: (facts) => {
      const exposed = placedIn(facts).filter(
        ({ stream }) => stream.storage === 'file' && stream.replicas < MIN_REPLICAS,
      )
      if (exposed.length === 0) return []
      return facts.servers
        .filter(({ intervalMs }) => intervalMs > 0)
        .map(({ server, intervalMs }) => ({
          subject: server,
          found: `sync_interval=${intervalMs / 1_000}s, ${exposed.length} streams with fewer than ${MIN_REPLICAS} replicas`,
        }))
    },
  },
  {
    id: 'nats.version',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a server before 2.12',
    why: 'It cannot delay messages, and @redrive/nats does not start with it.',
    fix: 'update the server to 2.12 or later',
    hits: ({ version }) => {
      const [major = 0, minor = 0] = (version ?? '').split('.').map(Number)
      const isOld = major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1])
      return version !== undefined && isOld ? [{ subject: 'version', found: version }] : []
    },
  },
  {
    id: 'nats.account-full',
    severity: 'delay',
    caps: 'A',
    looksFor: 'an account that uses 90 % of its file storage',
    why: 'When the rest is used, the server rejects producers and hand-offs.',
    fix: 'raise the limit of the account (max_file), or purge streams',
    hits: ({ account }) =>
      account !== undefined && account.used >= account.most * FULL
        ? [{ subject: 'account', found: `${account.used} of ${account.most} bytes` }]
        : [],
  },
  {
    id: 'nats.stream-missing',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a missing source, retry or dead-letter stream',
    why: 'Failed messages cannot be stored there: they stay in flight, and the consumer stops.',
    fix: "start a consumer with topology: 'declare', or create what topologyOf lists",
    hits: ({ streams, sources }) => {
      if (streams === undefined) return []
      const present = new Set(streams.map(({ name }) => name))
      return [...new Set(sources.flatMap(neededStreams))]
        .filter((name) => !present.has(name))
        .map((name) => ({ subject: name, found: 'does not exist' }))
    },
  },
  {
    id: 'nats.memory-consumer',
    severity: 'duplicates',
    caps: 'A',
    looksFor: 'a consumer that is stored in memory',
    why: 'After a restart of the server, its position is lost: messages are handled again.',
    fix: 'create a consumer without mem_storage, with another name',
    hits: ({ consumers }) =>
      consumers
        .filter(({ isInMemory }) => isInMemory)
        .map(({ stream, name }) => ({ subject: `${stream} > ${name}`, found: 'mem_storage' })),
  },
  {
    id: 'nats.ack-pending-full',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a consumer with max_ack_pending messages in flight',
    why: 'The server delivers no more messages until some are acknowledged.',
    fix: 'nats consumer edit {stream} {consumer} --max-pending=20000; check for processes that hang',
    hits: ({ consumers }) =>
      consumers.flatMap(({ stream, name, ackPending, maxAckPending }) =>
        maxAckPending !== undefined && ackPending >= maxAckPending
          ? [
              {
                subject: `${stream} > ${name}`,
                found: `${ackPending} of ${maxAckPending}`,
                fill: { stream, consumer: name },
              },
            ]
          : [],
      ),
  },
]
