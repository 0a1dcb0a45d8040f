import {
  type Boundary,
  checkDeaths,
  DEATHS,
  dieAtEach,
  ONE_BY_ONE,
  OPENS_AT_ONCE,
} from '../../harness/crash-points.ts'
import type { Evidence, Violation } from '../../evidence/evidence.ts'
import type { Kind } from '../../evidence/message.ts'
import type { Failpoint, PostgresConsumerOptions } from '../consumer-options.ts'
import type { QueryName } from '../queries.ts'
import type { PostgresScenario } from '../world.ts'

interface Reached {
  /** The kind of message that leads to the query. */
  readonly kind: Kind
  readonly consumer?: Partial<PostgresConsumerOptions>
  /** A consumer dies here first; its death causes the query. */
  readonly first?: Failpoint
}

/**
 * Every query of a consumer, and what triggers it. A query without a name is a violation. Only the
 * ping of the listener is not here: it comes after 15 s of silence and changes nothing.
 */
const REACHED: Readonly<Record<Exclude<QueryName, 'ping'>, Reached>> = {
  isolation: { kind: 'good' },
  ready: { kind: 'good' },
  clock: { kind: 'good' },
  retain: { kind: 'good' },
  maintain: { kind: 'good' },
  listen: { kind: 'good' },
  claim: { kind: 'good' },
  complete: { kind: 'good' },
  'hand-off retry': { kind: 'flaky' },
  'hand-off dead-letter': { kind: 'business' },
  'hand-off quarantine': { kind: 'repeats' },
  'hand-off give-back': { kind: 'outage', consumer: { policy: OPENS_AT_ONCE } },
  // The handler is slow enough that the lease must be renewed.
  heartbeat: { kind: 'good', consumer: { workMs: 10_000 } },
  'inbox begin': { kind: 'good' },
  'inbox enter': { kind: 'good' },
  'inbox effect': { kind: 'good' },
  'inbox commit': { kind: 'good' },
  'inbox rollback': { kind: 'flaky' },
  'inbox forget': { kind: 'good' },
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
  story: `a consumer dies before and after every query it sends, at ${BOUNDARIES.length} points; nothing is lost`,
  service: 'postgres',
  messages: DEATHS,
  play: (world) => dieAtEach(world, BOUNDARIES),
  check: (evidence) => [...checkDeaths(evidence, BOUNDARIES), ...checkNamed(evidence)],
}

/** Checks that every query has a name here; otherwise no process died at it. */
function checkNamed({ entries }: Evidence): readonly Violation[] {
  const unnamed = entries.flatMap((entry) =>
    entry.what === 'event' && entry.type === 'unnamed_query' ? [entry.note ?? ''] : [],
  )
  return [...new Set(unnamed)].map((text) => ({
    rule: 'scenario',
    text: `no process dies at this query: ${text}`,
  }))
}
