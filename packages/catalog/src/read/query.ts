import { FAILURE_CLASSES, type FailureClass } from '@redrive/core'
import { Check, SOURCES_MAX } from './check.ts'

/**
 * The status of a dead letter. `open`: it needs a decision. `unknown`: it was replayed, but neither a
 * confirmation nor a failure arrived.
 */
export type Status =
  | 'open'
  | 'replaying'
  | 'unknown'
  | 'not_returned'
  | 'resolved'
  | 'discarded'
  | 'expired'
const STATUSES: readonly Status[] = [
  'open',
  'replaying',
  'unknown',
  'not_returned',
  'resolved',
  'discarded',
  'expired',
]

/** A JSON value that can be compared. */
export type Scalar = string | number | boolean | null

/** A range of whole numbers. Both limits are inclusive. */
export interface CountRange {
  /** Default: no lower limit. */
  readonly from?: number
  /** Default: no upper limit. */
  readonly to?: number
}

/**
 * Filters for dead letters. A dead letter must match all of them. There are no patterns and no code in filters.
 * One of `groups`, `key`, `messageId`, `extracted`, `after` and `firstAfter` is required, because it bounds the number
 * of rows to read.
 */
export interface DeadLetterQuery {
  /** Ids of groups, at most 100. */
  readonly groups?: readonly string[]
  /** Last failure at this time or later, epoch ms. */
  readonly after?: number
  /** Last failure before this time, epoch ms. */
  readonly before?: number
  /** First failure, in the first cycle, at this time or later, epoch ms. */
  readonly firstAfter?: number
  /** First failure, in the first cycle, before this time, epoch ms. */
  readonly firstBefore?: number
  /** The business key. */
  readonly key?: string
  /** The id that the message has in the broker. */
  readonly messageId?: string
  /** Values that the ingest extracted, by name. */
  readonly extracted?: Readonly<Record<string, string>>
  /** Names of sources, at most 1,000. */
  readonly sources?: readonly string[]
  readonly handler?: string
  /** Default: open. */
  readonly statuses?: readonly Status[]
  readonly class?: FailureClass
  readonly code?: string
  readonly type?: string
  readonly lane?: string
  /** Number of attempts in the current cycle. Both limits are inclusive, and one is enough. */
  readonly attempts?: CountRange
  readonly quarantined?: boolean
  /** Exact values of headers for display, by name. At most 8. */
  readonly headers?: Readonly<Record<string, string>>
  /** Exact values of the preview, by JSON Pointer (RFC 6901). At most 8. */
  readonly json?: Readonly<Record<string, Scalar>>
  /** Parts of the failure message, ignoring case. At most 8; the message must contain all of them. */
  readonly texts?: readonly string[]
  /** Maximum number of rows (1 to 200, default 50). */
  readonly limit?: number
  /** Cursor from the previous page. */
  readonly cursor?: string
}

/** 100 groups: more than users select by hand. */
const LIST_MAX = 100
/** 8 of each: every one is compared for each row. */
const PAIRS_MAX = 8

/** Checks a query and reports all problems together, including unknown fields. Queries come from callers. */
export function checkDeadLetterQuery(query: DeadLetterQuery): void {
  const check = new Check('deadLetters()', query, FIELDS)
  check.ids('groups', LIST_MAX)
  check.timestamps('after', 'before', 'firstAfter', 'firstBefore')
  check.texts('key', 'messageId', 'handler', 'code', 'type', 'lane', 'cursor')
  check.lists('texts', PAIRS_MAX)
  check.ranges('attempts')
  check.lists('sources', SOURCES_MAX)
  check.oneOf('class', FAILURE_CLASSES)
  check.someOf('statuses', STATUSES)
  check.booleans('quarantined')
  check.pairs('headers', PAIRS_MAX, (value) => typeof value === 'string')
  check.pairs('extracted', PAIRS_MAX, (value) => typeof value === 'string')
  check.pairs('json', PAIRS_MAX, isScalar)
  check.pointers('json')
  check.page()
  if (!isBounded(query)) {
    check.problem(
      'one of "groups", "key", "messageId", "extracted", "after" and "firstAfter" is required, because a search over all dead letters takes too long',
    )
  }
  check.done()
}

const isBounded = ({
  groups,
  key,
  messageId,
  after,
  firstAfter,
  extracted = {},
}: DeadLetterQuery) =>
  [groups, key, messageId, after, firstAfter, Object.keys(extracted)[0]].some(
    (one) => one !== undefined,
  )

const isScalar = (value: unknown) =>
  value === null || Number.isFinite(value) || ['string', 'boolean'].includes(typeof value)

const FIELDS: Readonly<Record<keyof DeadLetterQuery, true>> = {
  groups: true,
  after: true,
  before: true,
  firstAfter: true,
  firstBefore: true,
  key: true,
  messageId: true,
  extracted: true,
  sources: true,
  handler: true,
  statuses: true,
  class: true,
  code: true,
  type: true,
  lane: true,
  attempts: true,
  quarantined: true,
  headers: true,
  json: true,
  texts: true,
  limit: true,
  cursor: true,
}
