import type { Check } from '../finding.ts'
import { MIN_REPLICAS } from './checks-server.ts'
import type { NatsFacts } from './facts.ts'
import { onStreams, type Role, sizeLimitsOf } from './look.ts'

const ALL: readonly Role[] = ['source', 'retry', 'deadLetters']
const OWN: readonly Role[] = ['retry', 'deadLetters']
/** 1 day: an operator finds in the morning a consumer that paused in the evening. */
const SOURCE_AGE_MS = 86_400_000
const FULL = 0.9
const EDIT = 'nats stream edit {subject}'

/** Checks whether the streams keep messages for as long as they are needed. */
export const STREAM_CHECKS: readonly Check<NatsFacts>[] = [
  {
    id: 'nats.replicas',
    severity: 'loss',
    caps: 'B',
    looksFor: 'fewer than three replicas',
    why: 'With one replica, the loss of a disk loses its messages. With two, the stream stops while one server is down.',
    fix: `${EDIT} --replicas=3, in a cluster of three servers`,
    hits: onStreams(ALL, ({ stream: { replicas } }) =>
      replicas < MIN_REPLICAS ? `${replicas} of ${MIN_REPLICAS} replicas` : undefined,
    ),
  },
  {
    id: 'nats.memory-storage',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a stream in memory',
    why: 'Its messages are lost when its servers restart.',
    fix: 'create the stream with storage file, and copy its messages; the storage of a stream cannot be changed',
    hits: onStreams(ALL, ({ stream: { storage } }) =>
      storage === 'memory' ? 'storage=memory' : undefined,
    ),
  },
  {
    id: 'nats.discard-old',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a stream that deletes its oldest messages when it is full',
    why: 'It deletes messages that no consumer has handled. Redrive cannot notice this.',
    fix: `${EDIT} --discard=new, so that a full stream rejects producers, or remove the limit`,
    hits: onStreams(ALL, ({ stream }) => {
      const limits = sizeLimitsOf(stream)
      return stream.discard === 'old' && limits.length > 0
        ? `discard=old, ${limits.join(', ')}`
        : undefined
    }),
  },
  {
    id: 'nats.source-age',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a source stream with a maximum age below one day',
    why: 'A consumer that is down for longer, or pauses for longer because of an unhealthy dependency, never receives the messages.',
    fix: `${EDIT} --max-age=7d`,
    hits: onStreams(['source'], ({ stream: { maxAgeMs } }) =>
      maxAgeMs !== undefined && maxAgeMs < SOURCE_AGE_MS
        ? `max_age=${maxAgeMs / 1_000}s`
        : undefined,
    ),
  },
  {
    id: 'nats.own-age',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a retry or dead-letter stream with a maximum age',
    why: 'Retries that wait and dead letters that the catalog has not drained are deleted. Dead letters have their own time to live.',
    fix: `${EDIT} --max-age=0`,
    hits: onStreams(OWN, ({ stream: { maxAgeMs } }) =>
      maxAgeMs === undefined ? undefined : `max_age=${maxAgeMs / 1_000}s`,
    ),
  },
  {
    id: 'nats.nearly-full',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a stream that uses 90 % of a limit and rejects messages when it is full',
    why: 'When it is full, it rejects producers. A retry or dead-letter stream rejects hand-offs, and the consumer stops.',
    fix: 'raise max_msgs and max_bytes of {subject}, or drain it',
    hits: onStreams(ALL, ({ stream }) => {
      const { discard, messages, maxMessages, bytes, maxBytes } = stream
      if (discard === 'old') return undefined
      if (maxMessages !== undefined && messages >= maxMessages * FULL)
        return `${messages} of ${maxMessages} messages`
      return maxBytes !== undefined && bytes >= maxBytes * FULL
        ? `${bytes} of ${maxBytes} bytes`
        : undefined
    }),
  },
  {
    id: 'nats.message-size',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a retry or dead-letter stream with a smaller maximum message size than the source',
    why: 'The server rejects the copy of a large message that fails. It stays in flight until the limit is raised.',
    fix: `${EDIT} --max-msg-size=-1`,
    hits: onStreams(OWN, ({ stream: { maxMessageBytes: has }, source }) => {
      const wanted = source?.maxMessageBytes ?? Number.POSITIVE_INFINITY
      // A copy is larger than its original by the headers of Redrive, so an equal limit is too small.
      if (has === undefined || has > wanted) return undefined
      return `max_msg_size=${has}, source ${source?.maxMessageBytes ?? 'without a limit'}`
    }),
  },
  {
    id: 'nats.no-leader',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a stream without a leader',
    why: 'Nothing can be read from or written to it.',
    fix: 'start the servers with its replicas: nats stream info {subject}',
    hits: onStreams(ALL, ({ stream }) => (stream.hasLeader ? undefined : 'no leader')),
  },
  {
    id: 'nats.replica-behind',
    severity: 'delay',
    caps: 'A',
    looksFor: 'replicas that are offline or not current',
    why: 'The stream survives fewer further failures; without a majority of its replicas it stops.',
    fix: 'start the servers {missing:text}, or move the replicas: nats stream cluster peer-remove {subject}',
    hits: onStreams(ALL, ({ stream: { behind, replicas } }) => {
      if (behind.length === 0) return undefined
      const missing = behind.join(', ')
      return { found: `${behind.length} of ${replicas} replicas: ${missing}`, fill: { missing } }
    }),
  },
]
