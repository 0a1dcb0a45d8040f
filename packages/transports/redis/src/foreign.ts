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
  /** Whether it failed again, and the control plane has that failure. */
  readonly hasFailed: boolean
  /** Whether a job that does not exist any more was completed: BullMQ removes only completed jobs of this queue. */
  readonly isRemovedOnlyOnComplete: boolean
}

/** A job as the server stores it. */
export interface StoredJob {
  /** The last replay. */
  readonly replay: ReplayRecord | undefined
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
      replayId: replay?.hasFailed === false ? replay.replayId : undefined,
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
