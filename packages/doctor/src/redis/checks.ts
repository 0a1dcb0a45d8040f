import { type Check, type CheckHit, unreadableCheck } from '../finding.ts'
import type { RedisFacts } from './facts.ts'

/** 7.0: the oldest version that the tests of @redrive/redis use. */
const OLDEST_MAJOR = 7
/** 90 %: an operator can still act. */
const FULL = 0.9
const REWRITE = 'redis-cli CONFIG REWRITE'

/** Returns the problem as a hit of the server. */
const hit = ({ server }: RedisFacts, found: string | undefined): readonly CheckHit[] =>
  found === undefined ? [] : [{ subject: server, found }]

/** All checks of Redis. */
export const REDIS_CHECKS: readonly Check<RedisFacts>[] = [
  unreadableCheck('redis'),
  {
    id: 'redis.no-append-only-file',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a server without an append-only file',
    why: 'A restart loses everything since the last snapshot: messages, retries and dead letters. Without snapshots it loses everything.',
    fix: `redis-cli CONFIG SET appendonly yes; redis-cli CONFIG SET appendfsync always; ${REWRITE}`,
    hits: (facts) => hit(facts, facts.isAppendOnly === false ? 'appendonly no' : undefined),
  },
  {
    id: 'redis.append-fsync',
    severity: 'loss',
    caps: 'C',
    looksFor: 'an append-only file that reaches the disk after the response',
    why: 'The server confirms writes before they are on disk. When its machine loses power, about a second of confirmed writes is lost; with appendfsync no, up to half a minute.',
    fix: `redis-cli CONFIG SET appendfsync always; ${REWRITE}`,
    hits: (facts) => {
      const { appendFsync } = facts
      const isSafe = appendFsync === undefined || appendFsync === 'always'
      return hit(facts, isSafe ? undefined : `appendfsync ${appendFsync}`)
    },
  },
  {
    id: 'redis.eviction',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a memory limit with an eviction policy',
    why: 'At the limit, Redis deletes whole keys: streams with messages, retries or dead letters. Policies with volatile- also delete dead letters, because these have a retention.',
    fix: `redis-cli CONFIG SET maxmemory-policy noeviction; ${REWRITE}`,
    hits: (facts) => {
      const { evictionPolicy = 'noeviction', memory } = facts
      const isEvicting = evictionPolicy !== 'noeviction' && (memory?.most ?? 0) > 0
      return hit(
        facts,
        isEvicting
          ? `maxmemory-policy ${evictionPolicy}, maxmemory ${memory?.most} bytes`
          : undefined,
      )
    },
  },
  {
    id: 'redis.asynchronous-replicas',
    severity: 'loss',
    caps: 'C',
    looksFor: 'replicas',
    why: 'Replication is asynchronous. A failover to a replica loses the confirmed writes that it does not have.',
    fix: `limit the loss: redis-cli CONFIG SET min-replicas-to-write 1; redis-cli CONFIG SET min-replicas-max-lag 10; ${REWRITE}. Let producers wait with WAIT 1. Then accept this finding`,
    hits: (facts) => {
      const { role, replicas } = facts
      return hit(facts, role === 'primary' && replicas > 0 ? `${replicas} connected` : undefined)
    },
  },
  {
    id: 'redis.no-replica',
    severity: 'loss',
    caps: 'B',
    looksFor: 'a server without a replica',
    why: 'When the disk of the server is lost, all messages are lost.',
    fix: 'add a replica on another machine: redis-cli REPLICAOF HOST PORT, on the replica',
    hits: (facts) => {
      const { role, replicas } = facts
      return hit(facts, role === 'primary' && replicas === 0 ? 'no connected replica' : undefined)
    },
  },
  {
    id: 'redis.memory-full',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a server that uses 90 % of its memory limit and rejects writes when it is full',
    why: 'When it is full, it rejects producers and hand-offs. Failed messages stay in flight, and the consumer stops.',
    fix: 'raise maxmemory, or trim the streams: XTRIM STREAM MAXLEN ~ COUNT',
    hits: (facts) => {
      const { evictionPolicy, memory } = facts
      if (evictionPolicy !== 'noeviction' || memory === undefined || memory.most === 0) return []
      const isFull = memory.used >= memory.most * FULL
      return hit(facts, isFull ? `${memory.used} of ${memory.most} bytes` : undefined)
    },
  },
  {
    id: 'redis.failed-writes',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a snapshot or an append-only file that could not be written',
    why: 'Redis rejects all writes until the disk works again: producers and hand-offs fail, and the consumer stops.',
    fix: 'read the log of the server; free space on its disk, or correct the permissions of its folder',
    hits: (facts) => {
      const { failedWrites } = facts
      return hit(facts, failedWrites.length === 0 ? undefined : `${failedWrites.join(', ')}: error`)
    },
  },
  {
    id: 'redis.replica',
    severity: 'delay',
    caps: 'A',
    looksFor: 'the address of a replica',
    why: 'A replica rejects writes: neither consumers nor a control plane can use it.',
    fix: 'use the address of the primary: redis-cli INFO replication shows it as master_host',
    hits: (facts) => hit(facts, facts.role === 'replica' ? 'role replica' : undefined),
  },
  {
    id: 'redis.version',
    severity: 'advice',
    caps: 'A',
    looksFor: 'a server before 7.0',
    why: 'It gets no fixes any more, and @redrive/redis is not tested with it.',
    fix: 'update the server to 7.0 or later',
    hits: (facts) => {
      const { version } = facts
      const isOld = version !== undefined && Number(version.split('.')[0]) < OLDEST_MAJOR
      return hit(facts, isOld ? version : undefined)
    },
  },
  {
    id: 'redis.no-memory-limit',
    severity: 'advice',
    caps: 'A',
    looksFor: 'a server without a memory limit',
    why: 'When the memory of the machine is used up, the system ends Redis. With a limit and noeviction, Redis rejects writes, and Redrive repeats the hand-offs.',
    fix: `redis-cli CONFIG SET maxmemory BYTES; ${REWRITE}`,
    hits: (facts) => hit(facts, facts.memory?.most === 0 ? 'maxmemory 0' : undefined),
  },
]
