import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import { isId } from '../../read/check.ts'
import { checkDeadLetterQuery, type DeadLetterQuery } from '../../read/query.ts'
import { NAME_MAX } from '../../text.ts'

/** A selection of dead letters, frozen when the run is planned. All must be of one source. */
export type ReplaySelection =
  | { readonly ids: readonly string[] }
  /** The open dead letters of a failure group. */
  | { readonly group: string }
  /** Open dead letters that match. */
  | { readonly query: DeadLetterQuery }

/** One operation of a JSON Patch (RFC 6902). */
export type PatchOperation =
  | { readonly op: 'add' | 'replace' | 'test'; readonly path: string; readonly value: unknown }
  | { readonly op: 'remove'; readonly path: string }
  | { readonly op: 'move' | 'copy'; readonly path: string; readonly from: string }

/** A change to the messages before they are published. Without one, bytes and key are unchanged. */
export type ReplayChange =
  /** A new body, for a selection of one dead letter. */
  | { readonly edit: Uint8Array }
  /** One JSON Patch (RFC 6902) for every body of the selection. */
  | { readonly patch: readonly PatchOperation[] }
  /** A new key, so that the inbox processes the message again although it has the old key. */
  | { readonly force: true }

/** Gate results that a plan can override. The approver sees the overrides. */
export const OVERRIDES = ['quarantined', 'too_old', 'too_many_cycles', 'failed_recently'] as const
export type Override = (typeof OVERRIDES)[number]

/** What shows the outcome of a replay: the consumers confirm it, or only a returned message shows one. */
export type Proof = 'confirmations' | 'returns'
const PROOFS: readonly Proof[] = ['confirmations', 'returns']

/**
 * How the proof of a run was chosen. `requested`: by the request. `configured`: by the options of the catalog.
 * `confirmed_before`: its consumers have confirmed a replay. `redrive_dead_letters`: Redrive wrote a selected dead
 * letter. `foreign_dead_letters`: none of these.
 */
export type ProofReason =
  | 'requested'
  | 'configured'
  | 'confirmed_before'
  | 'redrive_dead_letters'
  | 'foreign_dead_letters'

export interface ReplayRequest {
  readonly selection: ReplaySelection
  /** Name of the user who plans the run. */
  readonly by: string
  /** Reason for the replay, for the approver and for later readers. */
  readonly note?: string
  /** Unique name of this request. A second call with the same name returns the same run. Default: none. */
  readonly request?: string
  readonly change?: ReplayChange
  /** Version of the dead letter that the user saw. If it has changed since, the plan is rejected. */
  readonly seenVersion?: number
  /**
   * Publish rate (0.1 to 10,000, default 50). All runs of a source together publish at most at the highest of their
   * rates.
   */
  readonly ratePerSecond?: number
  /** Canary stages: each starts when all items of the previous stage have an outcome. At most 8, default 1, 5, 50. */
  readonly canary?: readonly number[]
  /** The run pauses when more than this share of the latest items fails again (0 to 1, default 0.1). */
  readonly maxFailureRatio?: number
  /**
   * Maximum time for an outcome ('1s' to '7d', default '5m'). After it, the outcome is unknown. If the consumers
   * confirm nothing, it is not returned; each stage of the canary waits for this time.
   */
  readonly outcomeTimeout?: Duration
  /**
   * What shows the outcome of a replay. `'confirmations'`: the consumers confirm it. `'returns'`: they confirm
   * nothing, so only a message that returns to the dead-letter queue has a known outcome. Default: `'returns'` if the
   * consumers never confirmed a replay and no selected dead letter was written by Redrive.
   */
  readonly proof?: Proof
  /**
   * What to do if outcomes of the canary are unknown, although the consumers should confirm replays. Default
   * `'pause'`.
   */
  readonly onUnconfirmed?: 'pause' | 'continue'
  /** Older dead letters are not replayed unless `too_old` is overridden. Default '24h'. */
  readonly maxAge?: Duration
  /** Retention of keys in the consumers' inbox. Older dead letters need the change `force`. Default '30d'. */
  readonly inboxRetention?: Duration
  readonly overrides?: readonly Override[]
}

/** The options as stored with the run, in plain JSON. */
export interface RunOptions {
  readonly ratePerSecond: number
  readonly canary: readonly number[]
  readonly maxFailureRatio: number
  readonly outcomeTimeoutMs: number
  readonly onUnconfirmed: 'pause' | 'continue'
  /** What shows the outcome. Undefined: confirmations, in a run of an older release. */
  readonly proof?: Proof
  /** How `proof` was chosen. */
  readonly proofReason?: ProofReason
  readonly maxAgeMs: number
  readonly inboxRetentionMs: number
  readonly overrides: readonly Override[]
}

const RATE = 50
const RATE_MIN = 0.1
const RATE_MAX = 10_000
/** One message shows that the replay works, five confirm it, and fifty show that it keeps working. */
const CANARY: readonly number[] = [1, 5, 50]
/** One stage if nothing is confirmed, because each stage takes the whole time for an outcome. */
const CANARY_OF_RETURNS: readonly number[] = [10]
const CANARY_STAGES_MAX = 8
const MAX_FAILURE_RATIO = 0.1
const CONFIRM_MS = 300_000
const CONFIRM_MIN_MS = 1_000
const CONFIRM_MAX_MS = 604_800_000
const DAY_MS = 86_400_000
/** 30 days: the default retention of the PostgreSQL inbox. */
const INBOX_MS = 30 * DAY_MS
/** 1,000 ids: more than users select by hand. */
const IDS_MAX = 1_000
/** 256 operations: a larger repair needs a program. */
const OPERATIONS_MAX = 256
const NOTE_MAX = 2_000

/** Checks a request and reports all problems together. Requests come from callers. */
export function resolveRequest(request: ReplayRequest): RunOptions {
  const problems = [...selectionProblems(request), ...changeProblems(request)]
  const { by, note = '', request: name } = request
  if (!isText(by)) problems.push(`by: expected the name of the user, 1 to ${NAME_MAX} characters`)
  if (typeof note !== 'string' || note.length > NOTE_MAX)
    problems.push(`note: expected at most ${NOTE_MAX} characters`)
  if (name !== undefined && !isText(name))
    problems.push(`request: expected 1 to ${NAME_MAX} characters`)
  const options = optionsOf(request, problems)
  if (problems.length === 0) return options
  const message = `The replay request is invalid:\n- ${problems.join('\n- ')}`
  throw new RedriveError('POLICY_INVALID', message, { problems })
}

function optionsOf(request: ReplayRequest, problems: string[]): RunOptions {
  const { ratePerSecond = RATE, canary = CANARY, maxFailureRatio = MAX_FAILURE_RATIO } = request
  const { onUnconfirmed = 'pause', overrides = [] } = request
  const expect = (isValid: boolean, problem: string) => {
    if (!isValid) problems.push(problem)
  }
  expect(isBetween(ratePerSecond, RATE_MIN, RATE_MAX), 'ratePerSecond: expected 0.1 to 10000')
  const isCanary =
    Array.isArray(canary) && canary.length <= CANARY_STAGES_MAX && canary.every(isCount)
  expect(isCanary, `canary: expected at most ${CANARY_STAGES_MAX} whole numbers, each at least 1`)
  expect(isBetween(maxFailureRatio, 0, 1), 'maxFailureRatio: expected 0 to 1')
  expect(
    ['pause', 'continue'].includes(onUnconfirmed),
    'onUnconfirmed: expected "pause" or "continue"',
  )
  expect(
    request.proof === undefined || PROOFS.includes(request.proof),
    'proof: expected "confirmations" or "returns"',
  )
  const isKnown =
    Array.isArray(overrides) && overrides.every((one: Override) => OVERRIDES.includes(one))
  expect(isKnown, `overrides: expected some of ${OVERRIDES.join(', ')}`)
  return {
    ratePerSecond,
    canary,
    maxFailureRatio,
    onUnconfirmed,
    overrides,
    outcomeTimeoutMs: durationOf(request, 'outcomeTimeout', CONFIRM_MS, problems),
    maxAgeMs: durationOf(request, 'maxAge', DAY_MS, problems),
    inboxRetentionMs: durationOf(request, 'inboxRetention', INBOX_MS, problems),
  }
}

/** Adds the proof to the options, with its default canary. */
export const withProof = (
  options: RunOptions,
  { canary }: ReplayRequest,
  { proof, proofReason }: Required<Pick<RunOptions, 'proof' | 'proofReason'>>,
): RunOptions => ({
  ...options,
  canary: canary ?? (proof === 'returns' ? CANARY_OF_RETURNS : CANARY),
  proof,
  proofReason,
})

const DURATIONS = {
  outcomeTimeout: [CONFIRM_MIN_MS, CONFIRM_MAX_MS],
  maxAge: [1, Number.MAX_SAFE_INTEGER],
  inboxRetention: [1, Number.MAX_SAFE_INTEGER],
} as const

function durationOf(
  request: ReplayRequest,
  name: keyof typeof DURATIONS,
  defaultMs: number,
  problems: string[],
): number {
  const duration = request[name]
  if (duration === undefined) return defaultMs
  const ms = parseDuration(duration)
  const [least, most] = DURATIONS[name]
  if (ms !== undefined && isBetween(ms, least, most)) return ms
  problems.push(`${name}: expected a duration such as '5m', got '${duration}'`)
  return defaultMs
}

function selectionProblems({ selection }: ReplayRequest): string[] {
  const problem = [`selection: expected "ids" (1 to ${IDS_MAX}), a "group" or a "query"`]
  if (typeof selection !== 'object' || selection === null) return problem
  const [name, ...others] = Object.keys(selection)
  // A field that is ignored would replay more than the caller expects.
  if (others.length > 0) return [`selection: "${others[0]}" is not allowed next to "${name}"`]
  if ('ids' in selection) {
    const { ids } = selection
    const isValid = Array.isArray(ids) && isBetween(ids.length, 1, IDS_MAX) && ids.every(isId)
    return isValid && new Set(ids).size === ids.length ? [] : problem
  }
  if ('group' in selection) return isId(selection.group) ? [] : problem
  if (!('query' in selection)) return problem
  checkDeadLetterQuery(selection.query)
  const { statuses, limit, cursor } = selection.query
  const isComplete = [statuses, limit, cursor].every((one) => one === undefined)
  return isComplete
    ? []
    : ['selection.query: "statuses", "limit" and "cursor" are not allowed in a selection']
}

function changeProblems({ change, selection }: ReplayRequest): string[] {
  if (change === undefined) return []
  if ('edit' in change) {
    const isOne = 'ids' in selection && selection.ids.length === 1
    return isOne && change.edit instanceof Uint8Array
      ? []
      : ['change.edit: expected bytes (Uint8Array) and a selection of exactly one id']
  }
  if ('patch' in change) {
    const isValid = Array.isArray(change.patch) && isBetween(change.patch.length, 1, OPERATIONS_MAX)
    return isValid ? [] : [`change.patch: expected 1 to ${OPERATIONS_MAX} operations of RFC 6902`]
  }
  return change.force === true ? [] : ['change: expected "edit", "patch" or "force"']
}

const isBetween = (value: number, least: number, most: number) => value >= least && value <= most
const isCount = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 1
const isText = (value: unknown) =>
  typeof value === 'string' && value !== '' && value.length <= NAME_MAX
