import { cycleFromReport, type FailureCycle } from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'

/** The used part of a job of BullMQ. Its types are repeated here by shape: importing them would make the package required. */
export interface BullmqJob {
  readonly data: unknown
  readonly finishedOn?: number | undefined
  retry(
    state: 'failed',
    options: { readonly resetAttemptsMade: boolean; readonly resetAttemptsStarted: boolean },
  ): Promise<void>
  updateData(data: unknown): Promise<void>
}

/** What Redrive stores about the last replay of a job. */
export interface ReplayRecord {
  readonly replayId: string
  /** Time of the failure that it repairs: milliseconds since 1970, as text. */
  readonly failedAt: string
  readonly recordedAt: number
  /** Whether a job that does not exist any more was completed: BullMQ removes only completed jobs of this queue. */
  readonly isRemovedOnlyOnComplete: boolean
}

/** The record of the last replay of a job, with its state. */
export interface StoredReplay extends ReplayRecord {
  /** Whether the control plane has its result: a confirmation or another failure. */
  readonly hasEnded: boolean
}

/** Parses the record of a replay. A sign before it states that the replay has ended. */
export function parseReplay(text: string): StoredReplay | undefined {
  const start = text.indexOf('{')
  if (start < 0) return undefined
  return { ...(JSON.parse(text.slice(start)) as ReplayRecord), hasEnded: start > 0 }
}

/** A job as the server stores it. */
export interface StoredJob {
  /** The last replay. */
  readonly replay: StoredReplay | undefined
  /** Number of failures of the job that the control plane has. */
  readonly ingested: number
  /** The fields of BullMQ. Empty: the job does not exist. */
  readonly fields: ReadonlyMap<string, string>
}

export interface FailedJob extends StoredJob {
  readonly id: string
  /** Milliseconds since 1970, as text. */
  readonly failedAt: string
}

/** BullMQ writes this when workers crashed while they handled the job. */
const STALLED = /^job stalled more than/

/** Returns a failed job as a dead letter. */
export function readFailedJob(
  queue: string,
  { id, failedAt, replay, ingested, fields }: FailedJob,
): DrainedDeadLetter {
  const reason = fields.get('failedReason') ?? ''
  const stack = lastOf(fields.get('stacktrace'))
  const isStalled = STALLED.test(reason)
  const cycle = cycleOf(fields, reason, stack, Number(failedAt))
  return {
    delivery: {
      id,
      source: queue,
      lane: undefined,
      key: id,
      type: fields.get('name'),
      bytes: Buffer.from(fields.get('data') ?? ''),
      contentType: 'application/json',
      headers: {},
      cycle: { ...cycle, number: ingested + 1 },
      deliveryCount: 1,
      replayId: isFailureOf(replay, failedAt) ? replay.replayId : undefined,
      headerProblems: [],
    },
    origin: queue,
    envelope: { jobOptions: fields.get('opts') ?? '{}', failedAt },
    quarantined: isStalled,
    class: cycle.history.at(-1)?.class ?? 'unknown',
    reason: isStalled ? 'bullmq_stalled' : 'bullmq_failed',
    identity: 'stable',
    ...(stack === undefined ? {} : { stack }),
  }
}

/** Whether the failure ended this replay. A replay whose start is not complete was made from the same failure. */
const isFailureOf = (replay: StoredReplay | undefined, failedAt: string): replay is StoredReplay =>
  replay !== undefined && !replay.hasEnded && replay.failedAt !== failedAt

function cycleOf(
  fields: FailedJob['fields'],
  message: string,
  stack: string | undefined,
  at: number,
): FailureCycle {
  const type = typeIn(stack)
  // BullMQ before version 5 wrote the long name.
  const attempts = Number(fields.get('atm') ?? fields.get('attemptsMade') ?? 1)
  const cycle = cycleFromReport({ type, message, stack, at, attempts })
  const history = cycle.history.map((record) => ({ ...record, type: type ?? record.type }))
  return { ...cycle, history }
}

/** Returns the last text of a list in JSON; undefined when there is none. */
function lastOf(list: string | undefined): string | undefined {
  try {
    const texts: unknown = JSON.parse(list ?? '[]')
    const last: unknown = Array.isArray(texts) ? texts.at(-1) : undefined
    return typeof last === 'string' ? last : undefined
  } catch {
    // A worker of another language wrote it. The message of the failure is still there.
    return undefined
  }
}

/** Options of a job. Only these two matter here; the others are passed on. */
export interface JobOptions extends Readonly<Record<string, unknown>> {
  readonly removeOnComplete?: unknown
  readonly removeOnFail?: unknown
}

/** Returns the options of a job with their long names: BullMQ stores some of them with short ones. */
export function optionsOf(stored: string | undefined): JobOptions {
  const options = JSON.parse(stored ?? '{}') as Readonly<Record<string, unknown>>
  return Object.fromEntries(
    Object.entries(options).map(([name, value]) => [LONG_NAMES.get(name) ?? name, value]),
  )
}

const LONG_NAMES: ReadonlyMap<string, string> = new Map([
  ['cpof', 'continueParentOnFailure'],
  ['de', 'deduplication'],
  ['fpof', 'failParentOnFailure'],
  ['idof', 'ignoreDependencyOnFailure'],
  ['kl', 'keepLogs'],
  ['rdof', 'removeDependencyOnFailure'],
])

/** Returns the type of the error: a stack begins with it. BullMQ stores only its message. */
const typeIn = (stack: string | undefined) =>
  /^([A-Za-z_$][\w$.]*)(?::|\n|$)/.exec(stack ?? '')?.[1]
