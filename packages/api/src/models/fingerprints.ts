import { z } from 'zod'
import { count, failureClass, id } from './fields.ts'

const text = z.string().min(1).max(512)

const match = z.strictObject({
  class: failureClass.optional(),
  code: text.optional(),
  type: text.optional().describe('Event type of the message'),
  errorType: text.optional().describe('Type of the error, such as TypeError'),
  handler: text.optional(),
  text: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('Part of the failure message, ignoring case; `*` matches any characters'),
})

export const fingerprintRule = z.strictObject({
  name: z.string().min(1).max(200),
  source: text.optional().describe('Absent: all sources'),
  match: match.describe('A dead letter must match all conditions'),
  group: z.string().min(1).max(200).describe('Name of the group'),
})

export const fingerprintRules = z.object({ rules: z.array(fingerprintRule) })

export const fingerprintPreview = z
  .object({
    rules: z.array(
      z.object({
        rule: z
          .string()
          .optional()
          .describe(
            'Absent: no rule matches any more; they return to the groups of their signatures',
          ),
        group: z.string().optional().describe('Name of the group'),
        count: count.describe('Number of open dead letters that would move'),
        from: z
          .array(z.object({ group: id, title: z.string(), count }))
          .describe('Groups that they would leave; the 20 largest'),
        examples: z.array(z.object({ id, message: z.string() })),
      }),
    ),
    examined: count.describe('Number of open dead letters that were compared'),
    isComplete: z.boolean().describe('False: the time ended first; counts are lower limits'),
  })
  .meta({ id: 'FingerprintPreview' })

export const fingerprintsApplied = z.object({
  moved: count,
  examined: count,
  nextCursor: z.string().optional().describe('Send it to continue. Absent: all were compared'),
})
