import type { Run } from '@redrive/api'
import type { PlanRequest } from '../data/runs.ts'
import { type Override, isOverride } from './gates.ts'
import { keepsNumbers } from './edited-body.ts'
import { NBSP } from './numbers.ts'
import { durationText } from './times.ts'

/** The fields of a plan that the user can change, as texts. */
export interface PlanFields {
  /** Sizes of the canary stages: `1, 5, 50`. */
  readonly canary: string
  readonly rate: string
  readonly failurePercent: string
  readonly timeoutMinutes: string
  readonly note: string
  readonly overrides: readonly Override[]
  /** JSON Patch. Empty: messages are replayed unchanged. */
  readonly patch: string
}

const MINUTE_MS = 60_000

/** Returns the fields of an existing plan. */
export const fieldsOf = ({ options, note }: Pick<Run, 'options' | 'note'>): PlanFields => ({
  canary: options.canary.join(', '),
  rate: String(options.ratePerSecond),
  failurePercent: String(Math.round(options.maxFailureRatio * 1_000) / 10),
  timeoutMinutes: String(Math.round((options.outcomeTimeoutMs / MINUTE_MS) * 100) / 100),
  note,
  overrides: options.overrides.filter(isOverride),
  patch: '',
})

/** Returns the options of a plan that have no field, so that an update keeps them. */
export const keptOptions = ({ options }: Pick<Run, 'options'>): Omit<PlanRequest, 'selection'> => ({
  maxAge: `${options.maxAgeMs}ms`,
  inboxRetention: `${options.inboxRetentionMs}ms`,
  onUnconfirmed: options.onUnconfirmed,
  ...(options.proof !== undefined && options.proofReason === 'requested'
    ? { proof: options.proof }
    : {}),
})

/** A plan as the API accepts it, or what is wrong with each field. */
export type ReadPlan =
  | { readonly options: Omit<PlanRequest, 'selection'> }
  | { readonly problems: Readonly<Partial<Record<keyof PlanFields, string>>> }

const CANARY_MAX = 8

export function readPlan(fields: PlanFields): ReadPlan {
  const problems: Partial<Record<keyof PlanFields, string>> = {}
  const number = (name: 'rate' | 'failurePercent' | 'timeoutMinutes', from: number, to: number) => {
    const value = Number(fields[name])
    if (fields[name].trim() === '' || !(value >= from && value <= to))
      problems[name] = `Enter a number from ${from} to ${to.toLocaleString('en-US')}.`
    return value
  }
  const ratePerSecond = number('rate', 0.1, 10_000)
  const failurePercent = number('failurePercent', 0, 100)
  const minutes = number('timeoutMinutes', 0.02, 10_080)
  const canary = fields.canary.split(/[\s,]+/).filter((one) => one !== '')
  if (canary.length > CANARY_MAX || canary.some((one) => !/^[1-9]\d{0,8}$/.test(one)))
    problems.canary = 'Enter up to 8 whole numbers, such as 1, 5, 50. Empty: no canary.'
  const patch = readPatch(fields.patch)
  if (typeof patch === 'string') problems.patch = patch
  if (Object.keys(problems).length > 0 || typeof patch === 'string') return { problems }
  return {
    options: {
      ratePerSecond,
      maxFailureRatio: failurePercent / 100,
      outcomeTimeout: `${Math.round(minutes * MINUTE_MS)}ms`,
      canary: canary.map(Number),
      ...(fields.note.trim() === '' ? {} : { note: fields.note.trim() }),
      ...(fields.overrides.length === 0 ? {} : { overrides: [...fields.overrides] }),
      ...(patch === undefined ? {} : { change: { patch } }),
    },
  }
}

type Patch = Extract<NonNullable<PlanRequest['change']>, { patch: unknown }>['patch']

const EXAMPLE = '[{ "op": "copy", "from": "/merchant/currency", "path": "/currency" }]'

/** Reads a JSON Patch. Returns a text if it cannot be read; the server checks its operations. */
function readPatch(text: string): Patch | undefined | string {
  if (text.trim() === '') return undefined
  try {
    const value: unknown = JSON.parse(text)
    const isList =
      Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'object')
    if (isList && !keepsNumbers(text))
      return 'A number in the patch has more digits than the browser can send. Use the command line: redrive replay plan --patch FILE.'
    return isList ? (value as Patch) : `Expected a list of operations, such as ${EXAMPLE}`
  } catch (error) {
    if (error instanceof SyntaxError) return `The patch is not JSON: ${error.message}.`
    throw error
  }
}

/** Whether two sets of fields make the same plan. If not, the plan must be updated before it is approved. */
export const isSamePlan = (one: PlanFields, other: PlanFields): boolean =>
  (Object.keys(one) as (keyof PlanFields)[]).every(
    (name) => String(one[name]) === String(other[name]),
  )

/** Estimates how long a run publishes, ms. Without confirmations, each stage waits for messages that return. */
export function estimateMs({ options }: Pick<Run, 'options'>, ready: number): number {
  const { ratePerSecond, canary, outcomeTimeoutMs, proof } = options
  const publishMs = (ready / ratePerSecond) * 1_000
  if (proof !== 'returns') return publishMs
  let left = ready
  let waits = 0
  for (const size of canary) {
    if (left > 0) waits += 1
    left -= size
  }
  return publishMs + (waits + (left > 0 ? 1 : 0)) * outcomeTimeoutMs
}

/** Returns the pace of a run: 1 → 5 → 50, then 50 per second, about 12 min. */
export function paceText(run: Pick<Run, 'options'>, ready: number): string {
  const { canary, ratePerSecond } = run.options
  const stages = canary.length === 0 ? '' : `${canary.join(' → ')}, then `
  return `${stages}${ratePerSecond}${NBSP}per second, about ${durationText(estimateMs(run, ready))}`
}

/** What shows the outcomes of a run, in words. */
export function proofTexts({ options, source }: Pick<Run, 'options' | 'source'>): {
  readonly isProven: boolean
  readonly text: string
} {
  if (options.proof !== 'returns')
    return {
      isProven: true,
      text: `Consumers confirm replays. Without a confirmation within ${durationText(options.outcomeTimeoutMs)}, the outcome is unknown.`,
    }
  return {
    isProven: false,
    text: `The consumers of ${source} do not confirm replays. A message that does not return within ${durationText(options.outcomeTimeoutMs)} counts as not returned.`,
  }
}

/** 1 h: the server expires older plans, because the messages may have changed. */
export const PLAN_LIFE_MS = 3_600_000

/** Whether the server no longer accepts an approval of this plan. An approved run does not expire. */
export const isExpired = (
  { state, plannedAt }: Pick<Run, 'state' | 'plannedAt'>,
  now: number,
): boolean => state === 'planned' && plannedAt + PLAN_LIFE_MS <= now

/** Returns when a plan expires: expires in 20 min, expired. */
export const expiryText = (run: Pick<Run, 'state' | 'plannedAt'>, now: number): string =>
  isExpired(run, now) ? 'expired' : `expires in ${durationText(run.plannedAt + PLAN_LIFE_MS - now)}`

export const EXPIRED = 'The plan has expired. Plan again.'
