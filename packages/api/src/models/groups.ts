import { z } from 'zod'
import { count, failureClass, groupState, id, nextCursor, timestamp } from './fields.ts'

export const group = z
  .object({
    id,
    source: z.string(),
    handler: z.string().optional(),
    signature: z.string(),
    signatureFrom: z
      .enum(['rules', 'consumer'])
      .describe('Whether the rules made the signature, or the consumer gave it'),
    algorithm: z.int().describe('Version of the signature rules'),
    class: failureClass,
    code: z.string().optional(),
    errorType: z.string().optional().describe('Type of the error, such as TypeError'),
    frame: z
      .string()
      .optional()
      .describe('First line of your code in the stack trace, when it distinguishes the group'),
    name: z.string().optional().describe('Name by a fingerprint rule or a split'),
    title: z
      .string()
      .describe('Name, or failure message with ids, numbers and quoted values replaced'),
    sample: z.string().describe('Failure message of the first dead letter'),
    state: groupState,
    mutedUntil: timestamp.optional(),
    regressed: z.boolean(),
    regressedAt: timestamp.optional(),
    resolvedAt: timestamp.optional(),
    owner: z.string().optional(),
    firstSeenAt: timestamp,
    lastSeenAt: timestamp,
    count,
    openCount: count.describe('Number of open dead letters'),
    replayingCount: count.describe('Number of dead letters that are being replayed'),
    undecidedCount: count.describe('Number of dead letters whose replay has an unknown outcome'),
    attempts: count,
    mergedCount: count.describe('Number of groups that users merged into it'),
    mergedInto: z
      .object({
        group: id.describe('The group that contains its dead letters now'),
        by: z.string(),
        at: timestamp,
        reason: z.string(),
      })
      .optional()
      .describe('The merge of this group into another one. Lists show only the other one'),
    continues: z
      .array(id)
      .readonly()
      .optional()
      .describe('Groups of earlier signature rules with the same failures, at most 20'),
    continuedIn: id
      .optional()
      .describe(
        'Group of later signature rules with the same failures, where new dead letters are',
      ),
  })
  .meta({ id: 'Group' })
export type Group = z.output<typeof group>
export const groupPage = z.object({ groups: z.array(group), nextCursor })

export const splitGroup = z.object({
  group: group.describe('The new group'),
  moved: count.describe('Number of dead letters that this request moved'),
  examined: count,
  nextCursor: z
    .string()
    .optional()
    .describe('Send the same request with it to continue. Absent: all were compared'),
})

export const mergedGroups = z.object({ groups: z.array(group) })

export const explanation = z
  .object({
    signature: z.string(),
    algorithm: z.int(),
    shared: z.object({
      source: z.string(),
      class: failureClass,
      code: z.string().optional(),
      type: z.string().optional(),
      handler: z.string().optional(),
      frame: z.string().optional(),
      message: z.string(),
    }),
    unknown: z.array(z.enum(['type', 'frame', 'handler'])),
    sample: z.string(),
  })
  .meta({ id: 'GroupExplanation' })
