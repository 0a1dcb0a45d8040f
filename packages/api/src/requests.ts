import { z } from 'zod'
import { GROUP_ORDERS, OVERRIDES, PROOFS, SET_ASIDE_STATUSES } from './enums.ts'
import { fingerprintRule } from './models/fingerprints.ts'
import { action, failureClass, groupState, id, itemState, runState } from './models/fields.ts'

const limit = z
  .int()
  .min(1)
  .max(200)
  .optional()
  .describe('Maximum number of rows (1–200, default 50)')
const cursor = z.string().max(500).optional().describe('Cursor from the previous page')
const name = z.string().min(1).max(500)
const names = z.array(name).max(100).optional()
const timestamp = z.number()
/** A list of known values. It is not longer than the number of values, so a request cannot grow by repeating them. */
const listOf = <T extends z.ZodEnum>(values: T) => z.array(values).max(values.options.length)

export const byId = z.object({ id })
const reason = z.string().trim().min(1).max(1_000).describe('Reason, stored in the audit log')

export const unmaskQuery = z.object({ reason })
export const payloadQuery = z.object({
  reason,
  cycle: z
    .int()
    .min(1)
    .optional()
    .describe('Earlier cycle whose body a replay edited. Default: the current cycle'),
})
export const bySource = z.object({ source: name })

export const expiredQuery = z.object({ sources: names, limit, cursor })

export const groupQuery = z.object({
  sources: names,
  handler: name.optional(),
  states: listOf(groupState).optional(),
  class: failureClass.optional(),
  regressed: z.boolean().optional(),
  owner: name.optional(),
  hasOpen: z.boolean().optional().describe('Only groups that have open dead letters'),
  text: name
    .optional()
    .describe(
      'Part of the title or first message of a group or a group merged into it, ignoring case; later messages are not searched',
    ),
  order: z.enum(GROUP_ORDERS).optional(),
  limit,
  cursor,
})

/** 4,000 characters: more than users write, and less than the limit of a URL. */
const filter = z
  .string()
  .max(4_000)
  .describe(
    'Words such as `source:orders class:transient after:2h "eu bank"`; a dead letter must match all of them. docs/filters.md lists the fields',
  )

/** Strict: if a filter were ignored, the result would have more dead letters than the caller expects. */
export const deadLetterQuery = z.strictObject({ filter: filter.optional(), limit, cursor })

export const trendQuery = z.object({
  per: z.enum(['minute', 'hour']),
  after: timestamp,
  before: timestamp,
  groups: z.array(id).max(100).optional(),
  sources: names,
})

export const groupChange = z
  .strictObject({
    state: groupState.optional(),
    mutedUntil: timestamp
      .optional()
      .describe('End of the mute, with state `muted`; absent: muted until the group is reopened'),
    owner: name.nullable().optional().describe('Owner; null removes the owner'),
  })
  .meta({ id: 'GroupChange' })

export const groupMerge = z
  .strictObject({
    groups: z
      .array(id)
      .min(1)
      .max(100)
      .describe('Groups of the same source. Their dead letters, and later ones, join this group'),
    reason,
  })
  .meta({ id: 'GroupMerge' })

export const fingerprintPreview = z
  .strictObject({
    rules: z
      .array(fingerprintRule)
      .max(200)
      .optional()
      .describe('Rules to try. Default: the rules in the config of the server'),
    sources: names.describe('Default: all sources that the caller can view'),
  })
  .meta({ id: 'FingerprintPreviewRequest' })

export const fingerprintApply = z
  .strictObject({ sources: z.array(name).min(1).max(100), reason, cursor })
  .meta({ id: 'FingerprintApplyRequest' })

export const groupSplit = z
  .strictObject({
    filter: filter.describe(
      'Words such as `code:55P03 "relation ledger"`; fields: class, code, type, handler, header, text. Matching open dead letters, and later ones, join the new group',
    ),
    name: z.string().trim().min(1).max(200).describe('Name of the new group'),
    reason,
    cursor: z
      .string()
      .max(500)
      .optional()
      .describe('`nextCursor` of the previous response, with otherwise the same request'),
  })
  .meta({ id: 'GroupSplit' })

export const groupUnmerge = z.strictObject({ reason }).meta({ id: 'GroupUnmerge' })

export const newComment = z.strictObject({ text: z.string().min(1).max(10_000) })

const ids = z.array(id).min(1).max(1_000)

const NOT_A_SELECTION =
  'expected "ids", "group", or "selection" with "hash", and no other field. For a filter, create a selection first'

const hash = z.string().min(1).max(200)

export const selection = z.union(
  [
    z.strictObject({ ids }, NOT_A_SELECTION),
    z.strictObject({ group: id }, NOT_A_SELECTION),
    z.strictObject(
      {
        selection: id.describe('A selection of the caller'),
        hash: hash.describe('Hash of the selection that the caller reviewed'),
      },
      NOT_A_SELECTION,
    ),
  ],
  NOT_A_SELECTION,
)

export const selectionRequest = z
  .strictObject({
    action: z
      .enum(['discard', 'restore'])
      .describe('`discard` selects open dead letters, `restore` discarded ones'),
    filter,
  })
  .meta({ id: 'SelectionRequest' })

const as = z
  .enum(['resolved', 'open'])
  .describe('`resolved`: the replay took effect; `open`: it can be replayed again')
const NOT_A_DECISION = 'expected "as" with either "ids" or "filter", and no other field'

export const decision = z.union(
  [
    z.strictObject({ ids, as }, NOT_A_DECISION),
    z.strictObject(
      {
        filter: filter.describe(
          'Selects messages with an unknown outcome and not returned ones, at most 10,000 in one request',
        ),
        as,
      },
      NOT_A_DECISION,
    ),
  ],
  NOT_A_DECISION,
)

const path = z.string().max(1_000)
const operation = z.union([
  z.strictObject({ op: z.enum(['add', 'replace', 'test']), path, value: z.unknown() }),
  z.strictObject({ op: z.literal('remove'), path }),
  z.strictObject({ op: z.enum(['move', 'copy']), path, from: path }),
])

/** 8 MiB: the largest body that people edit in practice. */
const EDIT_MAX = 8 * 1_048_576

const change = z.union([
  z.strictObject({ edit: z.base64().max(Math.ceil(EDIT_MAX / 3) * 4) }),
  z.strictObject({ patch: z.array(operation).min(1).max(256) }),
  z.strictObject({ force: z.literal(true) }),
])

export const planRequest = z
  .strictObject({
    selection: z.union([
      z.strictObject({ ids }),
      z.strictObject({ group: id }),
      z.strictObject({ filter }),
    ]),
    note: z.string().max(2_000).optional(),
    change: change.optional(),
    ratePerSecond: z.number().min(0.1).max(10_000).optional(),
    canary: z.array(z.int().min(1)).max(8).optional(),
    maxFailureRatio: z.number().min(0).max(1).optional(),
    outcomeTimeout: z.string().max(20).optional(),
    proof: z
      .enum(PROOFS)
      .optional()
      .describe(
        'What shows the outcomes. Default: chosen by earlier confirmations and the dead letters',
      ),
    onUnconfirmed: z.enum(['pause', 'continue']).optional(),
    maxAge: z.string().max(20).optional(),
    inboxRetention: z.string().max(20).optional(),
    overrides: listOf(z.enum(OVERRIDES)).optional(),
  })
  .meta({ id: 'PlanRequest' })

export const approval = z.strictObject({
  hash: hash.describe('Hash of the run that the approver reviewed'),
})

export const runQuery = z.object({
  source: name.optional(),
  states: listOf(runState).optional(),
  limit,
  cursor,
})

export const setAsideQuery = z.object({
  sources: names,
  statuses: listOf(z.enum(SET_ASIDE_STATUSES))
    .optional()
    .describe('Default: open, requested and replaying'),
  limit,
  cursor,
})
export const setAsideSelection = z.strictObject({ ids })
export const setAsideApproval = z.strictObject({
  ids,
  withoutHeaders: z
    .array(name)
    .max(100)
    .optional()
    .describe(
      'Names of headers that the requests leave out, as the approver reviewed them. Default: none. Messages whose request differs are skipped',
    ),
})
export const setAsideReplay = z.strictObject({
  ids,
  withoutHeaders: z
    .array(name)
    .max(100)
    .optional()
    .describe('Names of headers to leave out; requires permission `edit`'),
})

export const itemQuery = z.object({
  states: listOf(itemState).optional(),
  limit,
  after: z.int().optional().describe('Position of the last item of the previous page'),
})

export const schemaOf = z.strictObject({
  type: name.optional().describe('Event type; absent: all types without a separate schema'),
  schema: z.record(z.string(), z.unknown()).describe('JSON Schema'),
})

export const autoReplay = z.strictObject({
  allowed: z.boolean(),
  quietFor: z
    .string()
    .max(20)
    .optional()
    .describe("Time without new failures before a replay ('1m'–'24h', default '5m')"),
  ratePerSecond: z.number().min(0.1).max(100).optional(),
})

export const tokenRequest = z.strictObject({
  name: z.string().min(1).max(100),
  actions: listOf(action).min(1),
  sources: z.array(name).min(1).max(100),
  days: z.int().min(1).max(90).describe('Days until the token expires (1–90)'),
  isAgent: z.boolean().optional(),
})

export const tokenQuery = z.object({
  everyone: z
    .boolean()
    .optional()
    .describe('Tokens of all users; requires permission "configure" on all sources'),
})

export const auditQuery = z.object({
  person: name.optional(),
  source: name.optional(),
  operation: name.optional(),
  subject: name.optional(),
  limit,
  before: z.int().optional().describe('Sequence of the last entry of the previous page'),
})
