import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import { isId } from '../read/check.ts'
import { checkDeadLetterQuery, type DeadLetterQuery } from '../read/query.ts'
import { NAME_MAX } from '../text.ts'

/** Which dead letters, frozen when the run is planned. All must be of one source. */
export type ReplaySelection =
  | { readonly ids: readonly string[] }
  /** The open ones of a failure group. */
  | { readonly group: string }
  /** Open dead letters that match. `text` is refused: it matches groups by their first message. */
  | { readonly query: DeadLetterQuery }

/** One operation of a JSON Patch (RFC 6902). */
export type PatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'move' | 'copy'; readonly path: string; readonly from: string }

/** What is changed on the way. Without one, bytes and key go out as they came. */
export type ReplayChange =
  /** Another body, for a selection of one. */
  | { readonly edit: Uint8Array }
  /** One JSON Patch (RFC 6902) for every body of the selection. */
  | { readonly patch: readonly PatchOperation[] }
  /** A new key, so that it takes effect again although the inbox knows the old one. */
  | { readonly force: true }

/** What may be replayed although a gate says no, if the approver agrees. */
export const OVERRIDES = ['quarantined', 'too_old', 'too_many_cycles', 'failing_again'] as const
export type Override = (typeof OVERRIDES)[number]

export interface ReplayRequest {
  readonly selection: ReplaySelection
  /** Who asks. */
  readonly by: string
  /** Why, for whoever approves and for later. */
  readonly note?: string
  /** Names this request: asked again, the same run is answered. Default: none. */
  readonly request?: string
  readonly change?: ReplayChange
  /** Version of the one dead letter that was looked at: if it has another one now, nothing is planned. */
  readonly seenVersion?: number
  /** Shared by all who replay into the source. 0.1 to 10,000, default 50. */
  readonly ratePerSecond?: number
  /** How many go first, and how many after all of those have a proof. At most 8 steps, default 1, 5, 50. */
  readonly ramp?: readonly number[]
  /** The run pauses when more than this share of the latest fails again. 0 to 1, default 0.1. */
  readonly refailLimit?: number
  /** How long a proof may take before the outcome is unknown. '1s' to '7d', default '5m'. */
  readonly confirmWithin?: Duration
  /**
   * What to do when outcomes of the ramp are unknown. A consumer without Redrive never proves anything:
   * for that, `'go_on'`. Default `'pause'`.
   */
  readonly unproven?: 'pause' | 'go_on'
  /** Older dead letters are not replayed unless `too_old` is overridden. Default '24h'. */
  readonly maxAge?: Duration
  /** How long the consumer's inbox remembers keys. What is older is only replayed by force. Default '30d'. */
  readonly inboxKeep?: Duration
  readonly overrides?: readonly Override[]
}

/** As it is kept with the run; plain JSON. */
export interface RunOptions {
  readonly ratePerSecond: number
  readonly ramp: readonly number[]
  readonly refailLimit: number
  readonly confirmWithinMs: number
  readonly unproven: 'pause' | 'go_on'
  readonly maxAgeMs: number
  readonly inboxKeepMs: number
  readonly overrides: readonly Override[]
}

const RATE = 50
const RATE_MIN = 0.1
const RATE_MAX = 10_000
/** One to see that it works at all, five to see it again, fifty to see that it lasts. */
const RAMP: readonly number[] = [1, 5, 50]
const RAMP_MAX = 8
const REFAIL_LIMIT = 0.1
const CONFIRM_MS = 300_000
const CONFIRM_MIN_MS = 1_000
const CONFIRM_MAX_MS = 604_800_000
const DAY_MS = 86_400_000
/** 30 days, as the inbox of PostgreSQL keeps keys. */
const INBOX_MS = 30 * DAY_MS
/** 1,000 by name: what people choose by hand. */
const IDS_MAX = 1_000
/** 256 operations: a repair that needs more is a program. */
const OPERATIONS_MAX = 256
const NOTE_MAX = 2_000

/** Says every problem at once: requests come from outside. */
export function resolveRequest(request: ReplayRequest): RunOptions {
  const problems = [...selectionProblems(request), ...changeProblems(request)]
  const { by, note = '', request: name } = request
  if (!isText(by)) problems.push('by: expected who asks')
  if (typeof note !== 'string' || note.length > NOTE_MAX)
    problems.push(`note: expected at most ${NOTE_MAX} characters`)
  if (name !== undefined && !isText(name))
    problems.push(`request: expected 1 to ${NAME_MAX} characters`)
  const options = optionsOf(request, problems)
  if (problems.length === 0) return options
  const message = `The replay cannot be planned:\n- ${problems.join('\n- ')}`
  throw new RedriveError('POLICY_INVALID', message, { problems })
}

function optionsOf(request: ReplayRequest, problems: string[]): RunOptions {
  const { ratePerSecond = RATE, ramp = RAMP, refailLimit = REFAIL_LIMIT } = request
  const { unproven = 'pause', overrides = [] } = request
  const expect = (isFit: boolean, sentence: string) => {
    if (!isFit) problems.push(sentence)
  }
  expect(isBetween(ratePerSecond, RATE_MIN, RATE_MAX), 'ratePerSecond: expected 0.1 to 10000')
  const isRamp = Array.isArray(ramp) && ramp.length <= RAMP_MAX && ramp.every(isCount)
  expect(isRamp, `ramp: expected at most ${RAMP_MAX} whole numbers from 1`)
  expect(isBetween(refailLimit, 0, 1), 'refailLimit: expected 0 to 1')
  expect(['pause', 'go_on'].includes(unproven), 'unproven: expected pause or go_on')
  const isKnown =
    Array.isArray(overrides) && overrides.every((one: Override) => OVERRIDES.includes(one))
  expect(isKnown, `overrides: expected some of ${OVERRIDES.join(', ')}`)
  return {
    ratePerSecond,
    ramp,
    refailLimit,
    unproven,
    overrides,
    confirmWithinMs: durationOf(request, 'confirmWithin', CONFIRM_MS, problems),
    maxAgeMs: durationOf(request, 'maxAge', DAY_MS, problems),
    inboxKeepMs: durationOf(request, 'inboxKeep', INBOX_MS, problems),
  }
}

const DURATIONS = {
  confirmWithin: [CONFIRM_MIN_MS, CONFIRM_MAX_MS],
  maxAge: [1, Number.MAX_SAFE_INTEGER],
  inboxKeep: [1, Number.MAX_SAFE_INTEGER],
} as const

function durationOf(
  request: ReplayRequest,
  name: keyof typeof DURATIONS,
  otherwise: number,
  problems: string[],
): number {
  const said = request[name]
  if (said === undefined) return otherwise
  const ms = parseDuration(said)
  const [least, most] = DURATIONS[name]
  if (ms !== undefined && isBetween(ms, least, most)) return ms
  problems.push(`${name}: expected a duration such as '5m', got ${said}`)
  return otherwise
}

function selectionProblems({ selection }: ReplayRequest): string[] {
  const problem = [`selection: expected ids (1 to ${IDS_MAX}), a group, or a query`]
  if (typeof selection !== 'object' || selection === null) return problem
  if (hasText(selection) || ('query' in selection && hasText(selection.query))) return [TEXT]
  if ('ids' in selection) {
    const { ids } = selection
    const isFit = Array.isArray(ids) && isBetween(ids.length, 1, IDS_MAX) && ids.every(isId)
    return isFit && new Set(ids).size === ids.length ? [] : problem
  }
  if ('group' in selection) return isId(selection.group) ? [] : problem
  if (!('query' in selection)) return problem
  checkDeadLetterQuery(selection.query)
  const { statuses, most, next } = selection.query
  const isWhole = [statuses, most, next].every((one) => one === undefined)
  return isWhole ? [] : ['selection.query: statuses, most and next do not belong in a selection']
}

/** Also next to `ids` and `group`: ignored there, it would replay more than the caller expects. */
const hasText = (filter: object | null | undefined) =>
  (filter as { readonly text?: unknown } | null | undefined)?.text !== undefined

const TEXT =
  'selection: "text" cannot select dead letters for a replay, because it matches groups by their first message and can select dead letters without this text. Select by "ids" or "group", or use another filter.'

function changeProblems({ change, selection }: ReplayRequest): string[] {
  if (change === undefined) return []
  if ('edit' in change) {
    const isOne = 'ids' in selection && selection.ids.length === 1
    return isOne && change.edit instanceof Uint8Array
      ? []
      : ['change.edit: expected bytes, and a selection of one id']
  }
  if ('patch' in change) {
    const isFit = Array.isArray(change.patch) && isBetween(change.patch.length, 1, OPERATIONS_MAX)
    return isFit ? [] : [`change.patch: expected 1 to ${OPERATIONS_MAX} operations of RFC 6902`]
  }
  return change.force === true ? [] : ['change: expected edit, patch or force']
}

const isBetween = (value: number, least: number, most: number) => value >= least && value <= most
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 1
const isText = (value: unknown) =>
  typeof value === 'string' && value !== '' && value.length <= NAME_MAX
