import { type Check, FUNCTION, isRecord, readOptions, type Section } from '@redrive/core/internal'
import type { Awaitable } from '../awaitable.ts'
import { CLOCK } from '../checks.ts'
import { type Clock, systemClock } from '../clock.ts'

/** When the health routes report a problem. */
export interface HealthOptions {
  /** Path before `/live`, `/ready` and `/consumer`. It begins with a slash. Default '/healthz'. */
  readonly path?: string
  /**
   * When the process is ready. `up`: every consumer is up. `consuming`: no consumer is down. `started`: from the
   * start of the consumers until they stop, for a process that also serves requests. Default `consuming`; of the
   * Fastify plugin `started`.
   */
  readonly ready?: 'up' | 'consuming' | 'started'
  /** Count the dead letters of a consumer, by its name: `{ orders: () => source.depth() }`. Default: not counted. */
  readonly deadLetters?: Readonly<Record<string, () => Awaitable<number>>>
  /** Dead letters of a consumer above which it is degraded (0–1,000,000,000, default 100). */
  readonly maxDeadLetters?: number
  /** Share of failed runs in the last five minutes above which a consumer is degraded (0–1, default 0.5). */
  readonly maxFailureRate?: number
  /** Time of counts and rates. Default: the system clock. */
  readonly clock?: Clock
}

export type ResolvedHealth = Required<HealthOptions>

/** 100: the limit that the alerts have. */
const MAX_DEAD_LETTERS = 100
const MAX_FAILURE_RATE = 0.5

/** Checks the options of `healthHandler`. Throws one error that lists every problem. */
export function readHealthOptions(options: HealthOptions): ResolvedHealth {
  return readOptions('healthHandler()', options, readHealth)
}

/** Reads the options from a section, which the packages of frameworks also have. */
export const readHealth = (
  top: Section,
  ready: ResolvedHealth['ready'] = 'consuming',
): ResolvedHealth => ({
  path: top.ifGiven<string>('path', PATH) ?? '/healthz',
  ready: top.choice('ready', ready, ['up', 'consuming', 'started']),
  deadLetters: top.ifGiven<ResolvedHealth['deadLetters']>('deadLetters', COUNTS) ?? {},
  maxDeadLetters: top.integer('maxDeadLetters', MAX_DEAD_LETTERS, { min: 0, max: 1e9 }),
  maxFailureRate: top.number('maxFailureRate', MAX_FAILURE_RATE, { min: 0, max: 1 }),
  clock: top.ifGiven<Clock>('clock', CLOCK) ?? systemClock,
})

const PATH: Check = {
  isValid: (value) => typeof value === 'string' && /^\/.*[^/]$/.test(value),
  expected: "a path such as '/healthz'",
}

const COUNTS: Check = {
  isValid: (value) => isRecord(value) && Object.values(value).every(FUNCTION.isValid),
  expected:
    'an object with functions that return a number, such as { orders: () => source.depth() }',
}
