import { z } from 'zod'
import { action, id, timestamp } from './fields.ts'

const grant = z
  .object({
    actions: z.array(action),
    sources: z.array(z.string()).describe('Source names; `*` matches any part of a name'),
  })
  .meta({ id: 'Grant' })

export const me = z
  .object({
    person: z.string(),
    name: z.string(),
    via: z.enum(['session', 'token', 'development']),
    grants: z.array(grant),
    canApproveOwn: z
      .boolean()
      .describe('Whether the caller may approve runs that they planned themselves'),
    csrf: z
      .string()
      .optional()
      .describe('Value of the header `X-Redrive-CSRF`, which every change in a session requires'),
  })
  .meta({ id: 'Me' })

const token = z
  .object({
    id,
    name: z.string(),
    person: z.string().describe('Owner of the token'),
    isAgent: z
      .boolean()
      .describe('Whether an autonomous program uses the token; such a token cannot approve runs'),
    grants: z.array(grant),
    createdAt: timestamp,
    expiresAt: timestamp,
    lastUsedAt: timestamp.optional(),
  })
  .meta({ id: 'Token' })
export const tokens = z.object({ tokens: z.array(token) })
export const sessions = z.object({
  sessions: z.array(
    z
      .object({
        id,
        person: z.string(),
        name: z.string(),
        createdAt: timestamp,
        lastUsedAt: timestamp,
      })
      .meta({ id: 'Session' }),
  ),
})
export const newToken = token
  .extend({
    secret: z
      .string()
      .describe('Secret of the token. It is returned once; only its hash is stored'),
  })
  .meta({ id: 'NewToken' })
