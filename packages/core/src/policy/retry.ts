import type { Backoff, Jitter } from '../backoff.ts'
import * as defaults from '../defaults.ts'
import { formatDuration, parseDuration } from '../duration.ts'
import { FAILURE_CLASSES, type FailureClass } from '../failure.ts'
import type { ClassPolicy, PolicyRole, RetryPolicy } from '../policy.ts'
import { isRecord, shown } from '../text.ts'
import type { Section } from './section.ts'

const ATTEMPT_BOUNDS = { min: 1, max: 1_000 }

const CLASS_ACTION: Readonly<Record<FailureClass, ClassPolicy['action']>> = {
  transient: 'retry',
  unknown: 'retry',
  schema: 'deadLetter',
  business: 'deadLetter',
  integration: 'deadLetter',
}

export function readRetry(section: Section, role: PolicyRole): RetryPolicy {
  const attempts = section.integer(
    'attempts',
    role === 'sink' ? defaults.SINK_ATTEMPTS : defaults.ATTEMPTS,
    ATTEMPT_BOUNDS,
  )
  const backoff = readBackoff(section, defaultBackoff(role), role)
  const classes = section.section('classes')
  const perClass = Object.fromEntries(
    FAILURE_CLASSES.map((name) => [
      name,
      readClass(classes.section(name), name, attempts, backoff, role),
    ]),
  ) as Record<FailureClass, ClassPolicy>
  classes.end()
  const policy: RetryPolicy = {
    minDelayMs: section.duration('minDelay', defaults.BACKOFF_FLOOR_MS, { min: 1, max: 3_600_000 }),
    maxAgeMs: section.duration('maxAge', defaults.MAX_AGE_MS),
    maxInlineDelayMs: section.duration('maxInlineDelay', defaults.INLINE_BELOW_MS, {
      min: 0,
      max: 300_000,
    }),
    unproven: readUnproven(section, role),
    history: section.integer('history', defaults.HISTORY, { min: 1, max: 100 }),
    classes: perClass,
  }
  section.end()
  return policy
}

function readUnproven(parent: Section, role: PolicyRole): RetryPolicy['unproven'] {
  if (role === 'sink' && parent.raw('unproven') === undefined) return undefined
  const section = parent.optional('unproven')
  if (section === undefined) return undefined
  const policy = {
    maxAgeMs: section.duration('maxAge', defaults.UNPROVEN_MAX_AGE_MS, {
      min: 1_000,
      max: DELAY_BOUNDS.max,
    }),
    runs: section.integer('runs', defaults.UNPROVEN_RUNS, { min: 2, max: 10_000 }),
  }
  section.end()
  return policy
}

function readClass(
  section: Section,
  name: FailureClass,
  attempts: number,
  backoff: Backoff,
  role: PolicyRole,
): ClassPolicy {
  const policy: ClassPolicy = {
    action: section.choice('action', CLASS_ACTION[name], ['retry', 'deadLetter']),
    attempts: section.integer('attempts', attempts, ATTEMPT_BOUNDS),
    backoff: readBackoff(section, backoff, role),
  }
  section.end()
  return policy
}

/** From 1 ms, because the factor multiplies it, to a year, longer than any useful wait. */
const DELAY_BOUNDS = { min: 1, max: 31_622_400_000 }

const baseMs = (role: PolicyRole) =>
  role === 'sink' ? defaults.SINK_BACKOFF_BASE_MS : defaults.BACKOFF_BASE_MS
const capMs = (role: PolicyRole) =>
  role === 'sink' ? defaults.SINK_BACKOFF_CAP_MS : defaults.BACKOFF_CAP_MS

function defaultBackoff(role: PolicyRole): Backoff {
  return {
    kind: 'exponential',
    baseMs: baseMs(role),
    factor: defaults.BACKOFF_FACTOR,
    capMs: capMs(role),
    jitter: 'full',
  }
}

const BACKOFF_KINDS = ['exponential', 'linear', 'fixed', 'decorrelated', 'progressive'] as const

function readBackoff(parent: Section, fallback: Backoff, role: PolicyRole): Backoff {
  if (parent.raw('backoff') === undefined) return fallback
  const section = parent.section('backoff')
  const kind = section.choice('kind', 'exponential', BACKOFF_KINDS)
  const backoff = readBackoffOf(kind, section, role)
  section.end()
  if ('capMs' in backoff && backoff.baseMs > backoff.capMs) {
    section.problem(
      'base',
      `${formatDuration(backoff.baseMs)} is longer than cap (${formatDuration(backoff.capMs)})`,
    )
  }
  return backoff
}

function readBackoffOf(kind: Backoff['kind'], section: Section, role: PolicyRole): Backoff {
  const base = () => section.duration('base', baseMs(role), DELAY_BOUNDS)
  const cap = () => section.duration('cap', capMs(role), DELAY_BOUNDS)
  switch (kind) {
    case 'exponential': {
      const factor = section.number('factor', defaults.BACKOFF_FACTOR, { min: 1, max: 100 })
      return { kind, baseMs: base(), factor, capMs: cap(), jitter: readJitter(section, 'full') }
    }
    case 'linear': {
      const stepMs = section.duration('step', baseMs(role))
      return { kind, baseMs: base(), stepMs, capMs: cap(), jitter: readJitter(section, 'full') }
    }
    case 'fixed':
      if (section.raw('delay') === undefined)
        section.problem('delay', "expected a duration such as '5s', got nothing")
      return {
        kind,
        delayMs: section.duration('delay', defaults.BACKOFF_BASE_MS),
        jitter: readJitter(section, 'none'),
      }
    case 'decorrelated':
      return { kind, baseMs: base(), capMs: cap() }
    case 'progressive':
      return readProgressive(section)
  }
}

function readProgressive(section: Section): Backoff {
  const tiers = section.raw('tiers') ?? {}
  if (!isRecord(tiers)) section.problem('tiers', `expected an object of lists, got ${shown(tiers)}`)
  const tiersMs: Partial<Record<FailureClass, readonly number[]>> = {}
  for (const [name, list] of Object.entries(isRecord(tiers) ? tiers : {})) {
    const known = FAILURE_CLASSES.find((one) => one === name)
    if (known === undefined)
      section.problem(
        `tiers.${name}`,
        `unknown failure class; known classes: ${FAILURE_CLASSES.join(', ')}`,
      )
    else tiersMs[known] = readDelays(section, `tiers.${name}`, list)
  }
  return {
    kind: 'progressive',
    tiersMs,
    otherwiseMs: readDelays(section, 'otherwise', section.raw('otherwise')),
    jitter: readJitter(section, 'full'),
  }
}

function readDelays(section: Section, key: string, list: unknown): readonly number[] {
  const delays = Array.isArray(list) ? list.map(parseDuration) : []
  const valid = delays
    .filter((delay) => delay !== undefined)
    .filter((delay) => delay <= DELAY_BOUNDS.max)
  if (valid.length === 0 || valid.length < delays.length) {
    section.problem(
      key,
      `expected a list of durations such as ['1s', '10s', '1m'], got ${shown(list)}`,
    )
  }
  return valid
}

function readJitter(section: Section, fallback: Jitter): Jitter {
  const value = section.raw('jitter')
  if (value === undefined) return fallback
  if (value === 'full' || value === 'equal' || value === 'none') return value
  const share = isRecord(value) ? value['proportional'] : undefined
  if (typeof share === 'number' && share >= 0 && share <= 1) return { proportional: share }
  section.problem(
    'jitter',
    `expected 'full', 'equal', 'none' or { proportional: 0…1 }, got ${shown(value)}`,
  )
  return fallback
}
