import { z } from 'zod'
import {
  ACTIONS,
  FAILURE_CLASSES,
  GROUP_STATES,
  ITEM_STATES,
  RUN_STATES,
  STATUSES,
} from './words.ts'

/** Moments are epoch ms on the clock of the database. */
const moment = z.number()
const count = z.number()
export const id = z.uuid()
export const failureClass = z.enum(FAILURE_CLASSES)
export const status = z.enum(STATUSES)
export const groupState = z.enum(GROUP_STATES)
export const runState = z.enum(RUN_STATES)
export const itemState = z.enum(ITEM_STATES)
export const action = z.enum(ACTIONS)
const next = z.string().optional().describe('Pass it to read on; absent at the end')

export const group = z
  .object({
    id,
    source: z.string(),
    handler: z.string().optional(),
    signature: z.string(),
    algorithm: z.int().describe('Version of the rules of the signature'),
    class: failureClass,
    code: z.string().optional(),
    title: z.string().describe('The message with ids, numbers and quoted values replaced'),
    sample: z.string().describe('The message of the first one'),
    state: groupState,
    mutedUntil: moment.optional(),
    regressed: z.boolean(),
    regressedAt: moment.optional(),
    resolvedAt: moment.optional(),
    owner: z.string().optional(),
    firstSeenAt: moment,
    lastSeenAt: moment,
    count,
    openCount: count.describe('Open or being replayed'),
    attempts: count,
  })
  .meta({ id: 'Group' })
export type Group = z.output<typeof group>
export const groupPage = z.object({ groups: z.array(group), next })

export const why = z
  .object({
    signature: z.string(),
    algorithm: z.int(),
    shared: z.object({
      source: z.string(),
      class: failureClass,
      code: z.string().optional(),
      message: z.string(),
    }),
    unknown: z.array(z.enum(['type', 'frame', 'handler'])),
    sample: z.string(),
  })
  .meta({ id: 'WhyGrouped' })

const comment = z
  .object({ id: z.string(), author: z.string(), text: z.string(), writtenAt: moment })
  .meta({ id: 'Comment' })
export const comments = z.object({ comments: z.array(comment) })

const attempt = z.object({
  number: z.int(),
  at: moment,
  class: failureClass,
  signature: z.string(),
  code: z.string().optional(),
  message: z.string(),
})

export const deadLetter = z
  .object({
    id,
    group: id,
    source: z.string(),
    handler: z.string().optional(),
    status,
    quarantined: z.boolean(),
    class: failureClass,
    reason: z.string(),
    code: z.string().optional(),
    message: z.string(),
    type: z.string().optional(),
    messageId: z.string(),
    key: z.string(),
    lane: z.string().optional(),
    origin: z.string(),
    contentType: z.string().optional(),
    attempts: z.int(),
    cycle: z.int(),
    version: z.int().describe('Grows with every change of status'),
    payloadBytes: z.int(),
    isTombstone: z.boolean(),
    headers: z.record(z.string(), z.unknown()).describe('Bounded and masked'),
    history: z.array(attempt),
    firstFailedAt: moment,
    lastFailedAt: moment,
    ingestedAt: moment,
    settledAt: moment.optional(),
    settledBy: z.string().optional(),
  })
  .meta({ id: 'DeadLetter' })
export type DeadLetter = z.output<typeof deadLetter>
export const deadLetterPage = z.object({ deadLetters: z.array(deadLetter), next })

/** The body as far as the caller may see it. Everything in it is what some producer wrote. */
const body = z.object({
  preview: z.unknown().optional().describe('As JSON, masked; absent when there is none'),
  isHidden: z.boolean().describe('True: who asks may not see the body'),
})
export const deadLetterDetail = deadLetter
  .extend({ body: body.meta({ id: 'Body' }) })
  .meta({ id: 'DeadLetterDetail' })
export type DeadLetterDetail = z.output<typeof deadLetterDetail>

/** As the broker gave it. */
export const payload = z
  .object({
    bytes: z.base64().describe('The body, unchanged'),
    text: z.string().optional().describe('The same, when it is valid UTF-8'),
    headers: z.record(z.string(), z.unknown()).describe('Not masked'),
    key: z.string(),
    contentType: z.string().optional(),
  })
  .meta({ id: 'Payload' })

export const settled = z
  .object({
    changed: count,
    skipped: z.array(id).describe('Named, but not in the status that can be changed'),
  })
  .meta({ id: 'Settled' })

export const decided = z.object({ decided: count, skipped: z.array(id) }).meta({ id: 'Decided' })

const itemCounts = z.object(
  Object.fromEntries(itemState.options.map((state) => [state, count])) as Record<
    z.output<typeof itemState>,
    typeof count
  >,
)

export const run = z
  .object({
    id,
    source: z.string(),
    state: runState,
    hash: z.string().describe('Over all that decides what goes out; an approval names it'),
    note: z.string(),
    selection: z
      .unknown()
      .describe(
        'As it was asked for, without what who asks may not see: sources, values of bodies',
      ),
    options: z.object({
      ratePerSecond: z.number(),
      ramp: z.array(z.int()),
      refailLimit: z.number(),
      confirmWithinMs: z.number(),
      unproven: z.enum(['pause', 'go_on']),
      maxAgeMs: z.number(),
      inboxKeepMs: z.number(),
      overrides: z.array(z.string()),
    }),
    isChanged: z.boolean(),
    plannedBy: z.string(),
    plannedAt: moment,
    approvedBy: z.string().optional(),
    approvedAt: moment.optional(),
    resumedBy: z.string().optional(),
    pausedAt: moment.optional(),
    pausedBecause: z.string().optional(),
    endedAt: moment.optional(),
    counts: itemCounts,
    skipped: z.record(z.string(), count).describe('How many, by reason'),
  })
  .meta({ id: 'ReplayRun' })
export type Run = z.output<typeof run>
export const runPage = z.object({ runs: z.array(run), next })

const patchOperation = z.object({
  op: z.enum(['add', 'replace', 'test', 'remove', 'move', 'copy']),
  path: z.string(),
  from: z.string().optional(),
  value: z.unknown().optional().describe('Of `test` only for who may unmask: it is in the body'),
})

/** What a run changes on the way out. */
export const runChange = z
  .object({
    kind: z.enum(['none', 'edit', 'patch', 'force']),
    isHidden: z.boolean().describe('True: a part of it is only for who may unmask'),
    patch: z.array(patchOperation).optional().describe('RFC 6902'),
    bytes: z.base64().optional().describe('The edited body, for who may unmask'),
    text: z.string().optional().describe('The same, when it is valid UTF-8'),
  })
  .meta({ id: 'ReplayChange' })

const item = z
  .object({
    run: id,
    place: z.int(),
    deadLetter: id,
    replayId: z.string(),
    cycle: z.int(),
    state: itemState,
    reason: z.string().optional(),
    otherRun: id.optional(),
    publishes: z.int(),
    publishedAt: moment.optional(),
    settledAt: moment.optional(),
    proof: z.string().optional(),
  })
  .meta({ id: 'ReplayItem' })
export const items = z.object({ items: z.array(item) })

const source = z
  .object({
    source: z.string(),
    open: count,
    count,
    openByClass: z.partialRecord(failureClass, count),
    oldestAt: moment.optional(),
    may: z.array(action).describe('What who asks may do with it'),
  })
  .meta({ id: 'Source' })
export const sources = z.object({ sources: z.array(source) })

const alert = z
  .object({
    kind: z.enum(['depth', 'age', 'dominance', 'new_signature', 'regressed']),
    source: z.string(),
    group: id.optional(),
    depth: count.optional(),
    ageMs: count.optional(),
    share: z.number().optional(),
  })
  .meta({ id: 'Alert' })

export const overview = z
  .object({
    at: moment,
    depth: count,
    depthBySource: z.record(z.string(), count),
    depthByClass: z.partialRecord(failureClass, count),
    oldestAgeMs: count.optional(),
    averageAttempts: z.number().optional(),
    alerts: z.array(alert),
    frozenBecause: z.string().optional().describe('Why nothing is replayed now'),
  })
  .meta({ id: 'Overview' })

export const trend = z.object({ points: z.array(z.object({ at: moment, count })) })

const grant = z
  .object({
    actions: z.array(action),
    sources: z.array(z.string()).describe('Names of sources; `*` stands for any part of a name'),
  })
  .meta({ id: 'Grant' })

export const me = z
  .object({
    person: z.string(),
    name: z.string(),
    via: z.enum(['session', 'token', 'development']),
    grants: z.array(grant),
    csrf: z
      .string()
      .optional()
      .describe('With a session: the header `X-Redrive-CSRF` of every mutation'),
  })
  .meta({ id: 'Me' })

const token = z
  .object({
    id,
    name: z.string(),
    person: z.string().describe('Whose it is'),
    isAgent: z.boolean().describe('Used by a program that decides by itself: it never approves'),
    grants: z.array(grant),
    createdAt: moment,
    expiresAt: moment,
    lastUsedAt: moment.optional(),
  })
  .meta({ id: 'Token' })
export const tokens = z.object({ tokens: z.array(token) })
export const newToken = token
  .extend({ secret: z.string().describe('Shown once; only its hash is kept') })
  .meta({ id: 'NewToken' })

export const auditEntry = z
  .object({
    sequence: z.int(),
    at: moment,
    person: z.string(),
    via: z.string(),
    what: z.string().describe('The operation'),
    outcome: z.enum(['asked', 'done', 'refused', 'denied', 'failed', 'seen']),
    source: z.string().optional(),
    subject: z.string().optional(),
    facts: z.record(z.string(), z.unknown()),
    previous: z.string(),
    hash: z.string(),
  })
  .meta({ id: 'AuditEntry' })
export type AuditEntry = z.output<typeof auditEntry>
export const auditPage = z.object({ entries: z.array(auditEntry), next: z.int().optional() })
