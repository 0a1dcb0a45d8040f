import { z } from 'zod'
import { count, failureClass, id, nextCursor, status, timestamp } from './fields.ts'

const failure = z.object({
  number: z
    .int()
    .describe('Number of the failure in its cycle; numbers of omitted ones are missing'),
  at: timestamp,
  waitedMs: z.number().describe('How long the message waited for this run, in milliseconds'),
  class: failureClass,
  signature: z.string(),
  code: z.string().optional(),
  type: z.string().optional().describe('Type of the error, such as TypeError'),
  message: z.string(),
  counted: z.boolean().describe('Whether the run counts as an attempt'),
  trace: z.string().optional().describe('W3C traceparent of the run; absent without tracing'),
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
    runs: z.int().describe('Failed runs, counted as attempts or not'),
    cycle: z.int(),
    version: z.int().describe('Increases with every change of status'),
    payloadBytes: z.int(),
    isTombstone: z.boolean(),
    headers: z.record(z.string(), z.unknown()).describe('Headers, truncated and masked'),
    history: z.array(failure).describe('Last failures of the cycle, oldest first'),
    firstFailedAt: timestamp,
    lastFailedAt: timestamp,
    ingestedAt: timestamp,
    settledAt: timestamp.optional(),
    settledBy: z.string().optional(),
  })
  .meta({ id: 'DeadLetter' })
export type DeadLetter = z.output<typeof deadLetter>
export const deadLetterPage = z.object({
  deadLetters: z.array(deadLetter),
  nextCursor,
  searchedTo: timestamp
    .optional()
    .describe(
      'Set if the search used up its time before the page was full. All matching dead letters after this timestamp are in the pages so far. Continue with `nextCursor`',
    ),
})

/** The part of the body that the caller may see. Its content comes from the producer and is not trusted. */
const body = z.object({
  preview: z.unknown().optional().describe('Masked body as JSON; absent when the body is not JSON'),
  isHidden: z.boolean().describe('Whether the caller lacks permission to see the body'),
  hiddenBy: z
    .string()
    .optional()
    .describe('Mask that found nothing in the body, so that the body is not shown'),
})
export const deadLetterDetail = deadLetter
  .extend({ body: body.meta({ id: 'Body' }) })
  .meta({ id: 'DeadLetterDetail' })
export type DeadLetterDetail = z.output<typeof deadLetterDetail>

const cycle = z
  .object({
    cycle: z.int(),
    group: id.describe('Group of the failure; retention may have deleted it'),
    replayId: id.describe('Replay that ended this cycle and started the next'),
    firstFailedAt: timestamp,
    lastFailedAt: timestamp,
    attempts: z.int(),
    reason: z.string(),
    history: z.array(failure).describe('Last failures of the cycle, oldest first'),
    isEdited: z
      .boolean()
      .describe('Whether the replay had an edited body, so that the body of this cycle is kept'),
    body: body.optional().describe('Body before the edit; absent when it was not edited'),
  })
  .meta({ id: 'EarlierCycle' })
export const cycles = z.object({ cycles: z.array(cycle) })

/** The message as the broker delivered it. */
export const payload = z
  .object({
    bytes: z.base64().describe('Unchanged body'),
    text: z.string().optional().describe('Body as text, when it is valid UTF-8'),
    headers: z.record(z.string(), z.unknown()).describe('Unmasked headers'),
    key: z.string(),
    contentType: z.string().optional(),
  })
  .meta({ id: 'Payload' })

export const settled = z
  .object({
    changed: count,
    skippedCount: count,
    skipped: z
      .array(id)
      .describe(
        'Ids of dead letters that were not changed, because of their status or because they have changed since the selection; at most 1,000',
      ),
  })
  .meta({ id: 'Settled' })

export const frozenSelection = z
  .object({
    id,
    action: z.enum(['discard', 'restore']),
    hash: z.string().describe('Hash of the dead letters; a confirmation repeats it'),
    count: count.describe('Number of dead letters'),
    sources: z.array(z.string()),
    selectedBy: z.string(),
    selectedAt: timestamp.describe('The selection can be confirmed for one hour'),
  })
  .meta({ id: 'Selection' })

export const outcomesSet = z
  .object({
    changed: count,
    skipped: z.array(id).describe('Ids of messages whose outcome is already known; at most 1,000'),
    skippedCount: count
      .optional()
      .describe(
        'Number of messages whose outcome is already known. Default: the length of `skipped`',
      ),
    hasMore: z.boolean().optional().describe('More messages match the filter. Send it again'),
  })
  .meta({ id: 'OutcomesSet' })
