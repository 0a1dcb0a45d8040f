import { z } from 'zod'
import { SOURCE_STATUSES, STATUSES } from '../enums.ts'
import { action, count, failureClass, id, nextCursor, timestamp } from './fields.ts'

const expiring = count.describe(
  'Open and unknown dead letters that retention deletes within 7 days, or within half of a shorter retention; counted every hour',
)

const sourceStatus = z.enum(SOURCE_STATUSES)
const state = z
  .object({
    status: sourceStatus.describe(
      '`connected`; `unreachable`: the broker does not respond; `missing_queue`: a queue or topic does not exist; `not_checked`: no server process has checked the source within a minute',
    ),
    problem: z.string().optional().describe('The problem and its remedy; absent if connected'),
    depth: count.optional().describe('Dead letters that wait in the broker'),
    lag: count.optional().describe('Messages that wait for the consumers'),
    processes: z
      .array(z.object({ process: z.string(), status: sourceStatus, checkedAt: timestamp }))
      .describe('Server processes that check the source. The status above is the worst of them'),
  })
  .meta({ id: 'SourceState' })

const SET_ASIDE = 'Messages that are set aside and neither replayed nor discarded'

const source = z
  .object({
    source: z.string(),
    broker: z
      .string()
      .optional()
      .describe(
        'Kind of the broker or store, as in the config, such as `rabbitmq`; absent if the config of this process does not have the source',
      ),
    open: count.describe('Number of open dead letters'),
    replaying: count.describe('Number of dead letters that are being replayed'),
    undecided: count.describe('Number of dead letters whose replay has an unknown outcome'),
    count,
    openByClass: z.partialRecord(failureClass, count),
    oldestAt: timestamp.optional(),
    expiring,
    nextExpiryAt: timestamp.optional().describe('When the first of them expires'),
    lastIngestedAt: timestamp.optional().describe('When the last dead letter was ingested'),
    state,
    setAside: count.describe(SET_ASIDE),
    permissions: z.array(action).describe('Permissions of the caller on this source'),
  })
  .meta({ id: 'Source' })
export const sources = z.object({ sources: z.array(source) })

const alert = z
  .object({
    kind: z.enum([
      'depth',
      'age',
      'dominance',
      'new_signature',
      'regressed',
      'expiring',
      'set_aside',
      'replay_mismatch',
    ]),
    source: z.string(),
    group: id.optional(),
    depth: count.optional(),
    count: count.optional(),
    ageMs: count.optional(),
    share: z.number().optional(),
    expiring: count.optional(),
    nextExpiryAt: timestamp.optional(),
  })
  .meta({ id: 'Alert' })

export const overview = z
  .object({
    at: timestamp,
    depth: count.describe('Number of open dead letters'),
    replaying: count.describe('Number of dead letters that are being replayed'),
    undecided: count.describe('Number of dead letters whose replay has an unknown outcome'),
    depthBySource: z.record(z.string(), count),
    depthByClass: z.partialRecord(failureClass, count),
    oldestAgeMs: count.optional(),
    averageAttempts: z.number().optional(),
    expiring,
    setAside: count.describe(SET_ASIDE),
    alerts: z.array(alert),
    freezeReason: z
      .string()
      .optional()
      .describe('Reason why replays are frozen; absent when they are not'),
  })
  .meta({ id: 'Overview' })

const expiredDay = z
  .object({
    source: z.string(),
    day: z.string().describe('Day of the first failure, UTC, such as 2026-11-18'),
    expiredAt: timestamp
      .optional()
      .describe('When retention last deleted dead letters of this day'),
    byStatus: z
      .partialRecord(z.enum([...STATUSES, 'put_back']), count)
      .describe('Number by the last status that they had; `put_back`: returned to the broker'),
  })
  .meta({ id: 'ExpiredDay' })
export const expiredPage = z.object({ days: z.array(expiredDay), nextCursor })

export const trend = z.object({ points: z.array(z.object({ at: timestamp, count })) })

export const autoReplayState = z
  .object({
    state: z
      .enum(['enabled', 'requested', 'disabled'])
      .describe('`requested`: another user must send the same request to enable it'),
  })
  .meta({ id: 'AutoReplayState' })
