import { z } from 'zod'
import { GROUP_ORDERS, OVERRIDES } from './words.ts'
import { action, failureClass, groupState, id, itemState, runState, status } from './models.ts'

/** 1 to 200 on one page, default 50. */
const most = z.int().min(1).max(200).optional()
const next = z.string().max(500).optional()
const name = z.string().min(1).max(500)
const names = z.array(name).max(100).optional()
const moment = z.number()

export const byId = z.object({ id })
export const bySource = z.object({ source: name })

export const groupQuery = z.object({
  sources: names,
  handler: name.optional(),
  states: z.array(groupState).optional(),
  class: failureClass.optional(),
  regressed: z.boolean().optional(),
  owner: name.optional(),
  hasOpen: z.boolean().optional().describe('With dead letters that nobody has dealt with'),
  text: name
    .optional()
    .describe(
      "Part of the group's title or first message, ignoring case; later messages are not searched",
    ),
  order: z.enum(GROUP_ORDERS).optional(),
  most,
  next,
})

/** Pairs as `name=value`, so that they fit in an address. At most 8. */
const pairs = z
  .array(
    z
      .string()
      .regex(/^[^=]+=/)
      .max(2_000),
  )
  .max(8)
  .optional()

const filter = {
  groups: z.array(id).max(100).optional(),
  after: moment.optional().describe('Last failed at that moment or later'),
  before: moment.optional(),
  key: name.optional(),
  sources: names,
  handler: name.optional(),
  class: failureClass.optional(),
  code: name.optional(),
  type: name.optional(),
  quarantined: z.boolean().optional(),
}

export const deadLetterQuery = z.object({
  ...filter,
  text: name
    .optional()
    .describe(
      'Part of a failure message, ignoring case. With `groups`, `key` or `extracted` it matches the message of each dead letter. Otherwise it matches groups by their title or first message: the result can contain dead letters without this text and lack dead letters with it',
    ),
  statuses: z.array(status).optional(),
  extracted: pairs.describe('`name=value` of what was extracted at ingest'),
  headers: pairs.describe('`name=value` of a header'),
  json: pairs.describe('`/pointer=value` of the body; the value is JSON, or a text when it is not'),
  most,
  next,
})

const scalar = z.union([z.string(), z.number(), z.boolean(), z.null()])
const values = z.record(z.string(), z.string()).optional()

/** The same as a selection: open ones only, and no pages. */
const selected = z.strictObject({
  ...filter,
  text: name
    .optional()
    .describe(
      'Refused with 400: it matches groups by their first message and can select dead letters without this text. Select by `ids` or `group`, or use another filter',
    ),
  extracted: values,
  headers: values,
  json: z.record(z.string(), scalar).optional(),
})

export const trendQuery = z.object({
  per: z.enum(['minute', 'hour']),
  after: moment,
  before: moment,
  groups: z.array(id).max(100).optional(),
  sources: names,
})

export const groupChange = z
  .strictObject({
    state: groupState.optional(),
    mutedUntil: moment.optional().describe('With the state `muted`; absent: until it is reopened'),
    owner: name.nullable().optional().describe('null: nobody'),
  })
  .meta({ id: 'GroupChange' })

export const newComment = z.strictObject({ text: z.string().min(1).max(10_000) })

const ids = z.array(id).min(1).max(1_000)

const NOT_A_SELECTION =
  'expected "ids" or "group" and no other field. Filters such as "text" cannot select dead letters here'

export const selection = z.union(
  [z.strictObject({ ids }, NOT_A_SELECTION), z.strictObject({ group: id }, NOT_A_SELECTION)],
  NOT_A_SELECTION,
)

export const decision = z.strictObject({
  ids,
  as: z.enum(['resolved', 'open']).describe('They took effect, or they may be replayed again'),
})

const path = z.string().max(1_000)
const operation = z.union([
  z.strictObject({ op: z.enum(['add', 'replace', 'test']), path, value: z.unknown() }),
  z.strictObject({ op: z.literal('remove'), path }),
  z.strictObject({ op: z.enum(['move', 'copy']), path, from: path }),
])

/** 8 MiB: what a person can still look at. */
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
      z.strictObject({ query: selected }),
    ]),
    note: z.string().max(2_000).optional(),
    change: change.optional(),
    ratePerSecond: z.number().min(0.1).max(10_000).optional(),
    ramp: z.array(z.int().min(1)).max(8).optional(),
    refailLimit: z.number().min(0).max(1).optional(),
    confirmWithin: z.string().max(20).optional(),
    unproven: z.enum(['pause', 'go_on']).optional(),
    maxAge: z.string().max(20).optional(),
    inboxKeep: z.string().max(20).optional(),
    overrides: z.array(z.enum(OVERRIDES)).optional(),
  })
  .meta({ id: 'PlanRequest' })

export const approval = z.strictObject({
  hash: z.string().min(1).max(200).describe('Of the run, as the approver saw it'),
})

export const runQuery = z.object({
  source: name.optional(),
  states: z.array(runState).optional(),
  most,
  next,
})

export const itemQuery = z.object({
  states: z.array(itemState).optional(),
  most,
  after: z.int().optional().describe('The place after which to go on'),
})

export const schemaOf = z.strictObject({
  type: name.optional().describe('Type of event; absent: all that have no schema of their own'),
  schema: z.record(z.string(), z.unknown()).describe('A JSON Schema'),
})

export const autoReplay = z.strictObject({
  allowed: z.boolean(),
  quietFor: z.string().max(20).optional(),
  ratePerSecond: z.number().min(0.1).max(10_000).optional(),
})

export const tokenRequest = z.strictObject({
  name: z.string().min(1).max(100),
  actions: z.array(action).min(1),
  sources: z.array(name).min(1).max(100),
  days: z.int().min(1).max(365).describe('How long it is valid'),
  isAgent: z.boolean().optional(),
})

export const auditQuery = z.object({
  person: name.optional(),
  source: name.optional(),
  what: name.optional(),
  subject: name.optional(),
  most,
  before: z.int().optional().describe('The sequence before which to go on'),
})
