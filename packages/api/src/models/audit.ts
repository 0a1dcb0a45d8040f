import { z } from 'zod'
import { timestamp } from './fields.ts'

export const auditEntry = z
  .object({
    sequence: z.int(),
    at: timestamp,
    person: z.string(),
    via: z.string(),
    operation: z.string().describe('Operation of the API'),
    outcome: z.enum(['requested', 'done', 'refused', 'denied', 'failed', 'viewed']),
    source: z.string().optional(),
    subject: z.string().optional(),
    facts: z.record(z.string(), z.unknown()),
    previous: z.string(),
    hash: z.string(),
  })
  .meta({ id: 'AuditEntry' })
export type AuditEntry = z.output<typeof auditEntry>
export const auditPage = z.object({ entries: z.array(auditEntry), nextCursor: z.int().optional() })
