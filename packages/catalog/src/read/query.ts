import { FAILURE_CLASSES, type FailureClass } from '@redrive/core'
import { Check, SOURCES_MAX } from './check.ts'

/** Open means that someone has to deal with it; `unknown` that nobody can say whether its replay took effect. */
export type Status = 'open' | 'replaying' | 'unknown' | 'resolved' | 'discarded' | 'expired'
const STATUSES: readonly Status[] = [
  'open',
  'replaying',
  'unknown',
  'resolved',
  'discarded',
  'expired',
]

/** A value of JSON that can be compared. */
export type Scalar = string | number | boolean | null

/**
 * Which dead letters. All that is given must hold; there is nothing else, no code and no pattern. One of
 * `groups`, `key`, `extracted` and `after` is needed: it bounds what has to be looked at.
 */
export interface DeadLetterQuery {
  /** Ids of groups, at most 100. */
  readonly groups?: readonly string[]
  /** Last failed at that moment or later, epoch ms. */
  readonly after?: number
  /** Last failed before that moment, epoch ms. */
  readonly before?: number
  /** The business key. */
  readonly key?: string
  /** Values that were extracted at ingest, by name. */
  readonly extracted?: Readonly<Record<string, string>>
  /** Names of sources, at most 1,000. */
  readonly sources?: readonly string[]
  readonly handler?: string
  /** Default: open. */
  readonly statuses?: readonly Status[]
  readonly class?: FailureClass
  readonly code?: string
  readonly type?: string
  readonly quarantined?: boolean
  /** Readable headers that have exactly this value. */
  readonly headers?: Readonly<Record<string, string>>
  /** Values of the preview, by JSON Pointer (RFC 6901), that are exactly this. At most 8. */
  readonly json?: Readonly<Record<string, Scalar>>
  /**
   * Part of a failure message, ignoring case. With `groups`, `key` or `extracted` it matches the message of
   * each dead letter. Otherwise it matches groups by their title or first message: the result can contain
   * dead letters without this text and lack dead letters with it. A replay refuses it.
   */
  readonly text?: string
  /** Most on one page, 1 to 200, default 50. */
  readonly most?: number
  /** From the page before. */
  readonly next?: string
}

/** 100 names: more than people choose by hand. */
const LIST_MAX = 100
/** 8 of each: every one has to be looked at for each row. */
const PAIRS_MAX = 8

/** Says every problem at once, those of fields that do not exist included: queries come from outside. */
export function checkDeadLetterQuery(query: DeadLetterQuery): void {
  const check = new Check('deadLetters()', query, FIELDS)
  check.ids('groups', LIST_MAX)
  check.moments('after', 'before')
  check.texts('key', 'handler', 'code', 'type', 'text', 'next')
  check.lists('sources', SOURCES_MAX)
  check.oneOf('class', FAILURE_CLASSES)
  check.someOf('statuses', STATUSES)
  check.booleans('quarantined')
  check.pairs('headers', PAIRS_MAX, (value) => typeof value === 'string')
  check.pairs('extracted', PAIRS_MAX, (value) => typeof value === 'string')
  check.pairs('json', PAIRS_MAX, isScalar)
  check.pointers('json')
  check.page()
  const { groups, key, after, extracted = {} } = query
  const isBounded = [groups, key, after, Object.keys(extracted)[0]].some((one) => one !== undefined)
  if (!isBounded) {
    check.problem(
      'one of groups, key, extracted and after is needed: nothing searches all there is',
    )
  }
  check.done()
}

const isScalar = (value: unknown) =>
  value === null || ['string', 'number', 'boolean'].includes(typeof value)

const FIELDS: Readonly<Record<keyof DeadLetterQuery, true>> = {
  groups: true,
  after: true,
  before: true,
  key: true,
  extracted: true,
  sources: true,
  handler: true,
  statuses: true,
  class: true,
  code: true,
  type: true,
  quarantined: true,
  headers: true,
  json: true,
  text: true,
  most: true,
  next: true,
}
