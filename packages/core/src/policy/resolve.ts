import type { Rule } from '../classify/rules.ts'
import * as defaults from '../defaults.ts'
import { formatDuration } from '../duration.ts'
import { RedriveError } from '../errors.ts'
import { FAILURE_CLASSES } from '../failure.ts'
import type { DeadLetterFilter, Matcher } from '../filter.ts'
import type { Policy, PolicyRole } from '../policy.ts'
import { readBreaker, readBudget, readFlood, readLimit, readOutage, readPoison } from './guards.ts'
import type { PolicyOptions } from './options.ts'
import { readRetry } from './retry.ts'
import { isRecord, shown } from '../text.ts'
import { fillPlaceholders, FUNCTION, readSection, type Section } from './section.ts'

/** Returns the resolved policy, or throws one `POLICY_INVALID` error that lists every problem. */
export function resolvePolicy(options: PolicyOptions = {}, role: PolicyRole = 'consumer'): Policy {
  const problems: string[] = []
  const policy = readChecked(options, role, problems)
  if (problems.length > 0) throw invalid(problems)
  return policy
}

/**
 * Returns checked options for `consume` from plain data, such as a parsed YAML or JSON file:
 * `consume(transport, handler, { ...readPolicyOptions(file), schema })`. Fills `${NAME}` and
 * `${NAME:-default}` from `env`.
 */
export function readPolicyOptions(
  config: unknown,
  { env = {}, role = 'consumer' }: PolicySource = {},
): PolicyOptions {
  const problems: string[] = []
  const filled = fillPlaceholders(config, env, problems)
  readChecked(filled, role, problems)
  if (problems.length > 0) throw invalid(problems)
  return filled as PolicyOptions
}

/**
 * Fills `${NAME}` and `${NAME:-default}` in a whole configuration file. Use it for settings outside
 * the policy: addresses, queues, ports.
 */
export function fillConfig(config: unknown, env: NonNullable<PolicySource['env']>): unknown {
  const problems: string[] = []
  const filled = fillPlaceholders(config, env, problems)
  if (problems.length > 0) throw invalid(problems, 'configuration')
  return filled
}

export interface PolicySource {
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly role?: PolicyRole
}

function invalid(problems: readonly string[], what = 'policy'): RedriveError {
  const count = problems.length === 1 ? '1 problem' : `${problems.length} problems`
  return new RedriveError(
    'POLICY_INVALID',
    `The ${what} has ${count}:\n- ${problems.join('\n- ')}`,
    {
      problems,
    },
  )
}

function readChecked(input: unknown, role: PolicyRole, problems: string[]): Policy {
  const top = readSection('', input, problems)
  const policy = readPolicy(top, role)
  top.end()
  return policy
}

/** Reads the policy from options that may have more fields. The caller reads these and then ends the section. */
export function readPolicy(top: Section, role: PolicyRole): Policy {
  const concurrency = top.integer('concurrency', defaults.CONCURRENCY, { min: 1, max: 10_000 })
  const policy: Policy = {
    timeoutMs: top.duration('timeout', defaults.TIMEOUT_MS, { min: 1, max: 43_200_000 }),
    graceMs: top.duration('grace', defaults.GRACE_MS, { min: 0, max: 300_000 }),
    concurrency,
    order: top.choice('order', 'none', ['none', 'lane']),
    retry: readRetry(top.section('retry'), role),
    rules: readRules(top),
    breaker: readBreaker(top.optional('breaker'), role),
    onBreakerOpen: top.choice('onBreakerOpen', role === 'sink' ? 'deadLetter' : 'pause', [
      'pause',
      'deadLetter',
    ]),
    outage: readOutage(top.optional('outage')),
    adaptiveConcurrency: readLimit(top.optional('adaptiveConcurrency'), concurrency),
    retryBudget: readBudget(top.optional('retryBudget')),
    poison: readPoison(top.optional('poison')),
    flood: readFlood(top.optional('flood')),
    deadLetter: readDeadLetter(top.section('deadLetter')),
  }
  checkRelations(policy, top)
  return freeze(policy)
}

/** Checks rules between fields: each value may be valid alone while the pair is not. */
function checkRelations(policy: Policy, top: Section): void {
  const { breaker, adaptiveConcurrency, retry, poison } = policy
  if (breaker !== undefined && breaker.minOpenMs > breaker.maxOpenMs) {
    top.problem(
      'breaker.minOpen',
      `${formatDuration(breaker.minOpenMs)} is longer than breaker.maxOpen (${formatDuration(breaker.maxOpenMs)})`,
    )
  }
  if (adaptiveConcurrency !== undefined && adaptiveConcurrency.min > adaptiveConcurrency.max) {
    top.problem(
      'adaptiveConcurrency.min',
      `${adaptiveConcurrency.min} is more than concurrency (${adaptiveConcurrency.max})`,
    )
  }
  if (poison !== undefined && poison.repeats > retry.history) {
    top.problem(
      'poison.repeats',
      `${poison.repeats} is more than retry.history (${retry.history}), so it is never reached; increase retry.history or decrease poison.repeats`,
    )
  }
}

function readRules(top: Section): readonly Rule[] {
  const value = top.raw('classify')
  if (value === undefined) return []
  if (!Array.isArray(value)) {
    top.problem('classify', `expected a list of rules, got ${shown(value)}`)
    return []
  }
  for (const [index, rule] of value.entries()) {
    const problem = ruleProblem(rule)
    if (problem !== undefined) top.problem(`classify[${index}]`, problem)
  }
  return [...(value as readonly Rule[])]
}

/** Returns the problem of a rule. It is checked at the start, before the first failure needs the rule. */
function ruleProblem(rule: unknown): string | undefined {
  if (!isRecord(rule) || !FAILURE_CLASSES.some((one) => one === rule['class'])) {
    return `expected a rule such as transient(RateLimited) or { class: 'transient', when: { code: 'EX_BUSY' } }, got ${shown(rule)}`
  }
  const matches = Array.isArray(rule['when']) ? rule['when'] : [rule['when']]
  if (matches.length === 0) return '"when" is empty, so the rule would match nothing'
  return matches.map(matchProblem).find((problem) => problem !== undefined)
}

function matchProblem(match: unknown): string | undefined {
  if (typeof match === 'function') return undefined
  if (!isRecord(match))
    return `when: expected an error class, a function or { code, status, type }, got ${shown(match)}`
  const { code, status, type, ...others } = match
  const [unknown] = Object.keys(others)
  if (unknown !== undefined)
    return `when.${unknown}: unknown field; known fields: code, status, type`
  const isText = (value: unknown) => typeof value === 'string'
  const isNumber = (value: unknown) => typeof value === 'number'
  if (code !== undefined && !isText(code) && !(Array.isArray(code) && code.every(isText))) {
    return `when.code: expected text or a list of texts, got ${shown(code)}; put quotes around numbers`
  }
  if (
    status !== undefined &&
    !isNumber(status) &&
    !(Array.isArray(status) && status.length === 2 && status.every(isNumber))
  ) {
    return `when.status: expected a number or [from, to], got ${shown(status)}`
  }
  if (type !== undefined && !isText(type)) return `when.type: expected text, got ${shown(type)}`
  return code === undefined && status === undefined && type === undefined
    ? '"when" is empty, so the rule would match nothing'
    : undefined
}

function readDeadLetter(section: Section): Policy['deadLetter'] {
  const policy: Policy['deadLetter'] = {
    filter: readFilter(section),
    includeStack: section.boolean('includeStack', false),
    retentionMs: section.duration('retention', defaults.DEAD_LETTER_RETENTION_MS, {
      min: 1_000,
      max: 3_650 * 86_400_000,
    }),
  }
  section.end()
  return policy
}

/** Reads which dead letters are kept. The caller ends the section. */
export function readFilter(section: Section): DeadLetterFilter {
  return {
    keepIf: section.ifGiven<NonNullable<DeadLetterFilter['keepIf']>>('keepIf', FUNCTION),
    drop: readMatchers(section, 'drop'),
    keep: readMatchers(section, 'keep'),
  }
}

function readMatchers(section: Section, key: string): readonly Matcher[] {
  const value = section.raw(key)
  if (value === undefined) return []
  const isMatcher = (one: unknown) =>
    typeof one === 'string' || typeof one === 'function' || one instanceof RegExp
  if (Array.isArray(value) && value.every(isMatcher)) return [...(value as readonly Matcher[])]
  section.problem(key, `expected a list of texts, patterns or functions, got ${shown(value)}`)
  return []
}

/** Lists of rules and matchers are copied. Their items belong to the user and are not frozen. */
const USERS_OWN = new Set(['rules', 'drop', 'keep'])

function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value
  for (const [key, inner] of Object.entries(value)) {
    if (USERS_OWN.has(key)) Object.freeze(inner)
    else freeze(inner)
  }
  return Object.freeze(value)
}
