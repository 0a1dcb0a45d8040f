import { type Boundary, checkDeaths, dieAtEach } from '../../boundaries.ts'
import type { Evidence, Violation } from '../../evidence.ts'
import { type JsonPolicy, POLICY } from '../../consumer-options.ts'
import type { Kind } from '../../message.ts'
import type { Failpoint, PostgresConsumerOptions } from '../consumer-options.ts'
import type { QueryName } from '../queries.ts'
import type { PostgresScenario } from '../world.ts'

/** One message in hand, so that a kill may cost one duplicate and no more. */
const ONE_BY_ONE: JsonPolicy = { ...POLICY, concurrency: 1, poison: { repeats: 2 } }
/** The first failure opens the breaker, and the message is given back. */
const OPENS_AT_ONCE: JsonPolicy = {
  ...ONE_BY_ONE,
  outage: {},
  breaker: { trip: { kind: 'consecutive', failures: 1 }, minOpen: '1s' },
}

interface Reached {
  /** The kind of message that leads to the query. */
  readonly kind: Kind
  readonly consumer?: Partial<PostgresConsumerOptions>
  /** Somebody dies here first: the query is sent because of it. */
  readonly first?: Failpoint
}

/**
 * Every query a consumer sends, and what makes it send it; what is sent unnamed is a violation. Only the
 * ping of whoever listens is not here: it comes after 15 s of silence and changes nothing.
 */
const REACHED: Readonly<Record<Exclude<QueryName, 'ping'>, Reached>> = {
  ready: { kind: 'good' },
  maintain: { kind: 'good' },
  listen: { kind: 'good' },
  claim: { kind: 'good' },
  complete: { kind: 'good' },
  'hand-off retry': { kind: 'flaky' },
  'hand-off dead-letter': { kind: 'business' },
  'hand-off quarantine': { kind: 'repeats' },
  'hand-off give-back': { kind: 'outage', consumer: { policy: OPENS_AT_ONCE } },
  // Long enough in the handler that the lease must be renewed.
  heartbeat: { kind: 'good', consumer: { workMs: 10_000 } },
  'inbox begin': { kind: 'good' },
  'inbox limit': { kind: 'good' },
  'inbox enter': { kind: 'good' },
  'inbox effect': { kind: 'good' },
  'inbox alive': { kind: 'good' },
  'inbox commit': { kind: 'good' },
  'inbox rollback': { kind: 'flaky' },
  'inbox forget': { kind: 'good' },
  'inbox forget alive': { kind: 'good' },
  'inbox forget commit': { kind: 'good' },
  'inbox seen': { kind: 'good', first: { query: 'inbox commit', when: 'after' } },
}

const BOUNDARIES: readonly Boundary<PostgresConsumerOptions>[] = Object.entries(REACHED).flatMap(
  ([query, { kind, consumer, first }]) =>
    (['before', 'after'] as const).map((when) => {
      const common = { policy: ONE_BY_ONE, workMs: 0, isDependencyDown: true, ...consumer }
      return {
        name: `${query} ${when}`,
        kind,
        consumers: [...(first === undefined ? [] : [first]), { query, when }].map((failpoint) => ({
          ...common,
          failpoint,
        })),
      }
    }),
)

export const killAtBoundaries: PostgresScenario = {
  name: 'kill-at-boundaries',
  story: `a consumer dies before and after every query it sends, at ${BOUNDARIES.length} moments; nothing is lost`,
  service: 'postgres',
  messages: { smoke: 1, quick: 1, full: 5 },
  play: (world) => dieAtEach(world, BOUNDARIES, { policy: ONE_BY_ONE, workMs: 0 }),
  check: (evidence) => [...checkDeaths(evidence, BOUNDARIES), ...checkNamed(evidence)],
}

/** A query that has no name here is one at which nobody died. */
function checkNamed({ entries }: Evidence): readonly Violation[] {
  const unnamed = entries.flatMap((entry) =>
    entry.what === 'event' && entry.type === 'unnamed_query' ? [entry.note ?? ''] : [],
  )
  return [...new Set(unnamed)].map((text) => ({
    rule: 'scenario',
    text: `nobody dies at this query: ${text}`,
  }))
}
