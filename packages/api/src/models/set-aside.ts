import { z } from 'zod'
import { SET_ASIDE_STATUSES } from '../enums.ts'
import { count, id, nextCursor, timestamp } from './fields.ts'

export const setAsideMessage = z
  .object({
    id,
    source: z.string(),
    at: timestamp,
    reason: z.enum([
      'body_too_large',
      'headers_not_publishable',
      'headers_not_storable',
      'unreadable',
      'rejected_by_database',
    ]),
    explanation: z.string().describe('The reason as a sentence'),
    status: z.enum(SET_ASIDE_STATUSES),
    messageId: z.string(),
    key: z.string(),
    type: z.string().optional(),
    origin: z.string(),
    contentType: z.string().optional(),
    payloadBytes: count,
    isComplete: z
      .boolean()
      .describe('False only for messages that an earlier release stored in part'),
    sha256: z.string().describe('SHA-256 of the body, in hexadecimal digits'),
    requestedBy: z.string().optional().describe('User who requested the replay'),
    withoutHeaders: z
      .array(z.string())
      .describe('Names of headers that the requested replay leaves out'),
    settledAt: timestamp.optional(),
    replayError: z.string().optional().describe('Why the last replay failed'),
  })
  .meta({ id: 'SetAsideMessage' })
export const setAsidePage = z.object({ messages: z.array(setAsideMessage), nextCursor })

export const setAsidePayload = z
  .object({
    bytes: z.base64().describe('Unchanged body'),
    encodedHeaders: z
      .string()
      .optional()
      .describe(
        'Unchanged headers: one JSON value per line; lists and tables contain the line numbers of their values, from 0',
      ),
    envelope: z.record(z.string(), z.string()).optional(),
  })
  .meta({ id: 'SetAsidePayload' })

export const setAsideChanged = z
  .object({
    changed: count,
    skipped: z.array(id).describe('Ids of messages whose status does not allow the change'),
  })
  .meta({ id: 'SetAsideChanged' })
