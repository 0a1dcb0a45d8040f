import { FAILURE_CLASSES, STATUSES } from '../enums.ts'

/** A filter for dead letters, as the catalog reads it. A dead letter must match all fields. */
export interface DeadLetterFilter {
  readonly sources?: readonly string[]
  readonly groups?: readonly string[]
  readonly statuses?: readonly (typeof STATUSES)[number][]
  readonly class?: (typeof FAILURE_CLASSES)[number]
  readonly code?: string
  readonly type?: string
  readonly handler?: string
  readonly lane?: string
  readonly key?: string
  readonly messageId?: string
  readonly attempts?: { readonly from?: number; readonly to?: number }
  /** Last failure, epoch ms. */
  readonly after?: number
  readonly before?: number
  /** First failure, epoch ms. */
  readonly firstAfter?: number
  readonly firstBefore?: number
  readonly quarantined?: boolean
  readonly headers?: Readonly<Record<string, string>>
  readonly extracted?: Readonly<Record<string, string>>
  readonly json?: Readonly<Record<string, string | number | boolean | null>>
  readonly texts?: readonly string[]
}

/** How the value of a field is read. */
export type FilterKind =
  | 'name'
  | 'id'
  | 'choice'
  | 'yesno'
  | 'time'
  | 'range'
  | 'pair'
  | 'json'
  | 'text'

/** A field of the filter language. The parser, the help of the command line and docs/filters.md use this table. */
export interface FilterField {
  /** The name in front of the colon. */
  readonly name: string
  readonly kind: FilterKind
  /** The field of `DeadLetterFilter`. */
  readonly to: keyof DeadLetterFilter
  /** Maximum number of uses. Several uses of `source`, `group` and `status` match any of the values, all others all. */
  readonly most: number
  readonly choices?: readonly string[]
  readonly description: string
  readonly example: string
  /** Whether it bounds the number of rows to read. A filter needs at least one such field. */
  readonly isBound?: true
}

const GROUP = '0190163d-8694-739b-aea5-966c26f8ad91'

// biome-ignore format: one row per field, to be read as a table
export const FILTER_FIELDS: readonly FilterField[] = [
  { name: 'source', kind: 'name', to: 'sources', most: 100, description: 'Name of the source. Several: any of them.', example: 'source:orders' },
  { name: 'group', kind: 'id', to: 'groups', most: 100, isBound: true, description: 'Id of the failure group. Several: any of them. The command line also accepts the start of an id.', example: `group:${GROUP}` },
  { name: 'status', kind: 'choice', to: 'statuses', most: STATUSES.length, choices: STATUSES, description: 'Status. Several: any of them. Default: open.', example: 'status:discarded' },
  { name: 'class', kind: 'choice', to: 'class', most: 1, choices: FAILURE_CLASSES, description: 'Failure class.', example: 'class:transient' },
  { name: 'code', kind: 'name', to: 'code', most: 1, description: 'Error code of the failure.', example: 'code:ECONNREFUSED' },
  { name: 'type', kind: 'name', to: 'type', most: 1, description: 'Event type of the message.', example: 'type:order.placed' },
  { name: 'handler', kind: 'name', to: 'handler', most: 1, description: 'Handler that failed.', example: 'handler:charge' },
  { name: 'lane', kind: 'name', to: 'lane', most: 1, description: 'Lane of the message, for example its Kafka key.', example: 'lane:customer-77' },
  { name: 'key', kind: 'name', to: 'key', most: 1, isBound: true, description: 'Business key.', example: 'key:4711' },
  { name: 'message-id', kind: 'name', to: 'messageId', most: 1, isBound: true, description: 'Id of the message in the broker.', example: 'message-id:7f3c21' },
  { name: 'attempts', kind: 'range', to: 'attempts', most: 1, description: 'Number of attempts, or a range of it. Both ends are included.', example: 'attempts:5..' },
  { name: 'after', kind: 'time', to: 'after', most: 1, isBound: true, description: 'Last failure at this time or later: how long ago, or a time.', example: 'after:2h' },
  { name: 'before', kind: 'time', to: 'before', most: 1, description: 'Last failure before this time.', example: 'before:2026-01-31T10:00:00Z' },
  { name: 'first-after', kind: 'time', to: 'firstAfter', most: 1, isBound: true, description: 'First failure at this time or later. Earlier replays do not change the first failure.', example: 'first-after:7d' },
  { name: 'first-before', kind: 'time', to: 'firstBefore', most: 1, description: 'First failure before this time.', example: 'first-before:24h' },
  { name: 'quarantined', kind: 'yesno', to: 'quarantined', most: 1, choices: ['yes', 'no'], description: 'Whether the message is quarantined.', example: 'quarantined:yes' },
  { name: 'header', kind: 'pair', to: 'headers', most: 8, description: 'Exact value of a header, as it is displayed.', example: 'header:x-tenant=acme' },
  { name: 'json', kind: 'json', to: 'json', most: 8, description: 'Exact value in the body, by JSON Pointer. A value that is not JSON, or is in quotes, is a text.', example: 'json:/order/id=4711' },
  { name: 'extracted', kind: 'pair', to: 'extracted', most: 8, isBound: true, description: 'Value that the ingest extracted from the body.', example: 'extracted:order=4711' },
  { name: 'text', kind: 'text', to: 'texts', most: 8, description: 'Part of the failure message, ignoring case. A word without a field is the same.', example: 'text:eu-bank' },
]

/** Returns whether a filter has a field that bounds the number of rows to read. The server rejects others. */
export const isBoundedFilter = (filter: DeadLetterFilter): boolean =>
  FILTER_FIELDS.some(({ to, isBound }) => isBound === true && filter[to] !== undefined)
