import { z } from 'zod'
import { action, count, failureClass, id, timestamp } from './fields.ts'

const source = z
  .object({
    source: z.string(),
    open: count,
    count,
    openByClass: z.partialRecord(failureClass, count),
    oldestAt: timestamp.optional(),
    permissions: z.array(action).describe('Permissions of the caller on this source'),
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
    at: timestamp,
    depth: count,
    depthBySource: z.record(z.string(), count),
    depthByClass: z.partialRecord(failureClass, count),
    oldestAgeMs: count.optional(),
    averageAttempts: z.number().optional(),
    alerts: z.array(alert),
    freezeReason: z
      .string()
      .optional()
      .describe('Reason why replays are frozen; absent when they are not'),
  })
  .meta({ id: 'Overview' })

export const trend = z.object({ points: z.array(z.object({ at: timestamp, count })) })
