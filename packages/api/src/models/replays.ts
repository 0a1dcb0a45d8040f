import { z } from 'zod'
import { ACTIONS, PROOF_REASONS, PROOFS } from '../enums.ts'
import { count, id, itemState, nextCursor, runState, timestamp } from './fields.ts'

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
    hash: z
      .string()
      .describe(
        'Hash of everything that determines the published messages; an approval repeats it',
      ),
    note: z.string(),
    selection: z
      .unknown()
      .describe(
        'Selection of the request, without sources and body values that the caller may not see',
      ),
    options: z.object({
      ratePerSecond: z.number(),
      canary: z.array(z.int()),
      maxFailureRatio: z.number(),
      outcomeTimeoutMs: z.number(),
      onUnconfirmed: z.enum(['pause', 'continue']),
      proof: z
        .enum(PROOFS)
        .optional()
        .describe(
          'What shows the outcomes. `returns`: the consumers confirm nothing, so a message is sent, and then not returned. Absent: confirmations',
        ),
      proofReason: z.enum(PROOF_REASONS).optional().describe('How the proof was chosen'),
      maxAgeMs: z.number(),
      inboxRetentionMs: z.number(),
      overrides: z.array(z.string()),
    }),
    isChanged: z.boolean(),
    plannedBy: z.string(),
    plannedAt: timestamp,
    approvedBy: z.string().optional(),
    approvedAt: timestamp.optional(),
    resumedBy: z.string().optional(),
    pausedAt: timestamp.optional(),
    pauseReason: z.string().optional(),
    endedAt: timestamp.optional(),
    counts: itemCounts,
    skipped: z.record(z.string(), count).describe('Number of skipped items by reason'),
    approval: z
      .object({
        actions: z
          .array(z.enum(ACTIONS))
          .describe(
            'Permissions on the source that an approver needs. They cover the change of the run',
          ),
        endedBecause: z
          .string()
          .optional()
          .describe(
            'Why the earlier approval of a paused run has ended. Another approval resumes it',
          ),
      })
      .optional()
      .describe(
        'What an approval needs. Absent in lists, and unless the run is planned, or paused without a valid approval',
      ),
  })
  .meta({ id: 'ReplayRun' })
export type Run = z.output<typeof run>
export const runPage = z.object({ runs: z.array(run), nextCursor })

const patchOperation = z.object({
  op: z.enum(['add', 'replace', 'test', 'remove', 'move', 'copy']),
  path: z.string(),
  from: z.string().optional(),
  value: z
    .unknown()
    .optional()
    .describe(
      'Value of the operation. The value of a `test` requires permission `view_unmasked`, because it is part of the body',
    ),
})

/** The changes that a run makes to messages before it publishes them. */
export const runChange = z
  .object({
    kind: z.enum(['none', 'edit', 'patch', 'force']),
    isHidden: z
      .boolean()
      .describe('Whether parts are hidden because the caller lacks permission `view_unmasked`'),
    patch: z.array(patchOperation).optional().describe('JSON Patch (RFC 6902)'),
    bytes: z.base64().optional().describe('Edited body; requires permission `view_unmasked`'),
    text: z.string().optional().describe('Body as text, when it is valid UTF-8'),
  })
  .meta({ id: 'ReplayChange' })

const item = z
  .object({
    run: id,
    position: z.int(),
    deadLetter: id,
    replayId: z.string(),
    cycle: z.int(),
    state: itemState,
    reason: z.string().optional(),
    otherRun: id.optional(),
    publishCount: z.int(),
    publishedAt: timestamp.optional(),
    settledAt: timestamp.optional(),
    confirmedBy: z.string().optional(),
    key: z.string().optional().describe('Key of the dead letter; absent after it was deleted'),
    message: z.string().optional().describe('Latest failure message of the dead letter'),
    group: id.optional().describe('Current group of the dead letter'),
  })
  .meta({ id: 'ReplayItem' })
export const items = z.object({ items: z.array(item) })
