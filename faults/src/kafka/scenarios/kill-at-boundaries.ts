import {
  type Boundary,
  checkDeaths,
  DEATHS,
  dieAtEach,
  ONE_BY_ONE,
  queuesOf,
} from '../../harness/crash-points.ts'
import type { Evidence, Violation } from '../../evidence/evidence.ts'
import type { Entry } from '../../evidence/history.ts'
import type { Kind } from '../../evidence/message.ts'
import { createTopics } from '../broker.ts'
import type { KafkaConsumerOptions, When } from '../consumer-options.ts'
import type { RequestName } from '../requests.ts'
import type { Scale } from '../../harness/scenario.ts'
import type { KafkaScenario, KafkaWorld } from '../world.ts'
import { groupOf } from '../topology.ts'
import { onCluster } from './load.ts'

const AROUND: readonly When[] = ['before', 'answered']
const ALL: readonly When[] = ['before', 'written', 'answered', 'received']
/** One of these two is always the worst. */
const QUICK: ReadonlySet<When> = new Set(AROUND)
/** With `--smoke`, only the requests of a hand-off: fetch, copy and commit. */
const SMOKE: ReadonlySet<RequestName> = new Set(['fetch', 'produce', 'commit'])
/** With `--smoke`, these die at all points; a dead letter uses the same steps as a retry. */
const SMOKE_WHOLE: ReadonlySet<string> = new Set(['settle', 'retry'])

interface Reached {
  readonly decision: string
  readonly kind: Kind
  readonly request: RequestName
  readonly when: readonly When[]
  /** Part of the name of the topic that receives the copy. */
  readonly topic?: string
  readonly consumer?: Partial<KafkaConsumerOptions>
  /**
   * Whether only `full` plays it: it resembles another one, or the consumer has not started any
   * work.
   */
  readonly isOnlyFull?: boolean
}

/** Requests that every consumer sends before it has any message. */
const STARTING: readonly RequestName[] = [
  'versions',
  'metadata',
  'create-topics',
  'describe-configs',
  'find-coordinator',
  'join',
  'sync',
  'offset-fetch',
  'list-offsets',
]

const handOff = (
  decision: string,
  kind: Kind,
  topic: string,
  isOnlyFull = false,
): readonly Reached[] => [
  { decision, kind, topic, isOnlyFull, request: 'produce', when: ALL },
  { decision, kind, topic, isOnlyFull, request: 'commit', when: ALL },
]

/** Every request of a consumer, and what triggers it. A request that is not listed is a violation. */
const REACHED: readonly Reached[] = [
  ...STARTING.map((request): Reached => {
    const isOnlyFull = !['join', 'sync', 'offset-fetch'].includes(request)
    return { decision: 'start', kind: 'good', request, when: AROUND, isOnlyFull }
  }),
  { decision: 'settle', kind: 'good', request: 'fetch', when: ['before', 'answered', 'received'] },
  { decision: 'settle', kind: 'good', request: 'commit', when: ALL },
  {
    decision: 'settle',
    kind: 'good',
    request: 'heartbeat',
    when: AROUND,
    // The handler is slow enough that a heartbeat is sent.
    consumer: { workMs: 5_000 },
  },
  { decision: 'leave', kind: 'good', request: 'leave', when: AROUND },
  { decision: 'retry', kind: 'flaky', request: 'init-producer', when: AROUND },
  ...handOff('retry', 'flaky', '.retry.'),
  ...handOff('dead-letter', 'business', '.dlq'),
  ...handOff('quarantine', 'repeats', '.dlq', true),
]

const TRANSACTION: readonly RequestName[] = [
  'init-producer',
  'txn-add-partitions',
  'produce',
  'txn-add-offsets',
  'txn-commit',
  'txn-end',
]

const QUICKLY: ReadonlySet<RequestName> = new Set(['produce', 'txn-commit', 'txn-end'])

const IN_TRANSACTION: readonly Reached[] = (['flaky', 'business'] as const).flatMap((kind) =>
  TRANSACTION.map((request): Reached => {
    const decision = kind === 'flaky' ? 'retry' : 'dead-letter'
    const when: readonly When[] = request === 'txn-end' ? ALL : AROUND
    const isOnlyFull = kind === 'flaky' ? !QUICKLY.has(request) : request !== 'txn-end'
    return { decision, kind, request, when, isOnlyFull, consumer: { handOff: 'transactional' } }
  }),
)

type KafkaBoundary = Boundary<KafkaConsumerOptions>

/**
 * Returns whether a request is part of a form. `quick` has more requests; `smoke` has more points
 * of fewer requests.
 */
function isPlayed({ request, isOnlyFull = false }: Reached, scale: Scale): boolean {
  if (scale === 'full') return true
  return !isOnlyFull && (scale === 'quick' || SMOKE.has(request))
}

const isWhole = (decision: string, scale: Scale) =>
  scale === 'full' || (scale === 'smoke' && SMOKE_WHOLE.has(decision))

function boundariesOf(reached: readonly Reached[], scale: Scale): readonly KafkaBoundary[] {
  const played = reached.filter((one) => isPlayed(one, scale))
  return played.flatMap(({ decision, kind, request, when, topic, consumer }) =>
    when
      .filter((when) => isWhole(decision, scale) || QUICK.has(when))
      .map((when) => ({
        name: `${decision}, ${request} ${when}`,
        kind,
        consumers: [
          {
            policy: ONE_BY_ONE,
            workMs: 0,
            ...consumer,
            failpoint: { request, when, ...(topic === undefined ? {} : { topic }) },
          },
        ],
      })),
  )
}

async function play(
  world: KafkaWorld,
  reached: readonly Reached[],
  special: Partial<KafkaConsumerOptions> = {},
): Promise<void> {
  const boundaries = boundariesOf(reached, world.scale)
  await createTopics(world.broker, queuesOf(world, boundaries), world.partitions)
  await dieAtEach(world, boundaries, special)
}

export const killAtBoundaries: KafkaScenario = onCluster({
  name: 'kill-at-boundaries',
  story: `a consumer dies around every request it sends, at ${boundariesOf(REACHED, 'full').length} points (fewer with --quick and --smoke); one duplicate per death, nothing lost`,
  messages: DEATHS,
  // Each point has a separate topic, and each topic adds six others.
  partitions: 1,
  play: (world) => play(world, REACHED),
  check: (evidence, world) => [
    ...checkCosts(evidence, boundariesOf(REACHED, world.scale)),
    ...checkNamed(evidence),
  ],
})

export const transactional: KafkaScenario = onCluster({
  name: 'transactional',
  story:
    'a consumer dies around every request of a transactional hand-off; there is one copy of everything',
  messages: { quick: 1, full: 5 },
  partitions: 1,
  play: (world) => play(world, IN_TRANSACTION, { handOff: 'transactional' }),
  check: (evidence, world) => [
    ...checkCosts(evidence, boundariesOf(IN_TRANSACTION, world.scale)),
    ...checkNamed(evidence),
    ...checkSingle(evidence),
  ],
})

/**
 * Checks that a death costs one duplicate. It costs one more when a moving group rejected the
 * commit of the record before.
 */
function checkCosts(
  evidence: Evidence,
  boundaries: readonly KafkaBoundary[],
): readonly Violation[] {
  const refused = evidence.entries.flatMap((entry) =>
    entry.what === 'commit' && !entry.isAccepted ? [entry.group] : [],
  )
  const isExplained = ({ rule, id = '' }: Violation) =>
    rule === 'duplicates over the bound' && refused.includes(groupOf(id.split('/')[0] ?? ''))
  return checkDeaths(evidence, boundaries).filter((one) => !isExplained(one))
}

/** Checks that every request has a name here; otherwise no process died at it. */
function checkNamed({ entries }: Evidence): readonly Violation[] {
  const unnamed = entries.flatMap((entry) =>
    entry.what === 'event' && entry.type === 'unnamed_request' ? [entry.note ?? ''] : [],
  )
  return [...new Set(unnamed)].map((number) => ({
    rule: 'scenario',
    text: `no process dies at the request with API key ${number}`,
  }))
}

/**
 * Checks that copy and commit are atomic: no death leaves both the original and its copy, or two
 * copies.
 */
function checkSingle({ found, entries }: Evidence): readonly Violation[] {
  const copies = Map.groupBy(found, ({ id }) => id)
  const tooMany = (id: string, count: number, where: string): readonly Violation[] =>
    count > 1 ? [{ rule: 'copied twice', id, text: `${count} copies ${where}` }] : []
  return [
    ...[...copies].flatMap(([id, all]) => tooMany(id, all.length, 'in the end')),
    ...[...retriesIn(entries)].flatMap(([attempt, positions]) => {
      const [id = '', number] = attempt.split(' ')
      return tooMany(id, positions.size, `for attempt ${number}`)
    }),
  ]
}

/**
 * Returns the positions of the copies for each attempt; a second retry of a message has another
 * copy.
 */
function retriesIn(entries: readonly Entry[]): ReadonlyMap<string, ReadonlySet<string>> {
  const delivered = new Map<string, string>()
  const retries = new Map<string, Set<string>>()
  for (const entry of entries) {
    if (entry.what === 'delivered') delivered.set(`${entry.by} ${entry.id}`, entry.position)
    if (entry.what !== 'handler_started') continue
    const position = delivered.get(`${entry.by} ${entry.id}`)
    if (position?.includes('.retry.') !== true) continue
    const attempt = `${entry.id} ${entry.attempt}`
    retries.set(attempt, (retries.get(attempt) ?? new Set()).add(position))
  }
  return retries
}
