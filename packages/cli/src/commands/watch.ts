import { ApiError, type Client, type Run } from '@redrive/api'
import { type Duration, parseDuration } from '@redrive/core'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print, say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { wholeId } from '../server/ids.ts'
import { Progress } from '../text/progress.ts'
import { endText } from './run-text.ts'

export interface WaitOptions extends CommonOptions {
  /** Wait for the end. A run that pauses by itself is an end too: nobody is there to resume it. */
  readonly wait?: boolean
  /** How long to wait. Default: until the end. */
  readonly timeout?: string
}

export async function watchReplay(io: Io, given: string, options: WaitOptions): Promise<ExitCode> {
  const timeoutMs = timeoutOf(options.timeout)
  const client = connect(io, options)
  const id = await wholeId(io, client, 'run', given)
  const run = await client.call('getReplay', { params: { id } }, { signal: io.signal })
  return follow(io, client, run, { ...options, timeoutMs })
}

interface FollowOptions extends WaitOptions {
  /** `timeout`, checked. Counts from when the waiting begins. */
  readonly timeoutMs: number | undefined
}

/** Follows a run to its end. Whoever watches may leave: the run goes on. */
export async function follow(
  io: Io,
  client: Client,
  run: Run,
  options: FollowOptions,
): Promise<ExitCode> {
  const { timeoutMs } = options
  const late = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
  const signal = late === undefined ? io.signal : AbortSignal.any([io.signal, late])
  const progress = new Progress(io)
  let last = run
  try {
    last = await untilOver(io, client, run, { signal, progress, isWait: options.wait === true })
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    progress.end()
  }
  if (io.signal.aborted) return left(io, last, EXIT.interrupted)
  if (late?.aborted) return left(io, last, EXIT.timeout)
  print(io, options, { json: last, human: (page) => endText(page, last) })
  return exitOf(last)
}

/** A timer that is longer than that ends at once. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1

export function timeoutOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(text as Duration)
  if (ms !== undefined && ms > 0 && ms <= TIMEOUT_MAX_MS) return ms
  throw new CommandError(
    EXIT.usage,
    `--timeout: expected a duration such as 10m, 24d at most, got ${text}`,
  )
}

function left(io: Io, run: Run, exitCode: ExitCode): ExitCode {
  const why = exitCode === EXIT.timeout ? 'The time is over' : 'You left'
  say(
    io,
  )`${why}; the run goes on. Look again: redrive replay watch ${run.id}  Stop it: redrive replay pause ${run.id}`
  return exitCode
}

interface Following {
  readonly signal: AbortSignal
  readonly progress: Progress
  readonly isWait: boolean
}

/** 1 s until the next try after the connection is lost, 15 s at most: a restart of the server takes about that. */
const AGAIN_MS = 1_000
const AGAIN_CAP_MS = 15_000

async function untilOver(io: Io, client: Client, run: Run, following: Following): Promise<Run> {
  const { signal, progress, isWait } = following
  let last = run
  let failures = 0
  while (!isOver(last, isWait)) {
    try {
      const params = { id: run.id }
      for await (const seen of client.stream('watchReplay', { params }, { signal })) {
        failures = 0
        last = seen
        progress.show(seen)
        if (isOver(seen, isWait)) return seen
      }
    } catch (error) {
      if (signal.aborted || isFinal(error)) throw error
      progress.note('The connection to the server is lost. The run goes on; trying again.')
    }
    // A stream that ended too early: the server restarts, or a proxy has had enough.
    await io.sleep(Math.min(AGAIN_CAP_MS, AGAIN_MS * 2 ** failures), signal)
    signal.throwIfAborted()
    failures += 1
  }
  return last
}

/** What asking again does not change. */
const isFinal = (error: unknown): boolean =>
  error instanceof ApiError && error.problem.status < 500 && error.code !== 'too_many_requests'

const OVER: ReadonlySet<Run['state']> = new Set(['done', 'cancelled', 'lapsed'])

const isOver = ({ state }: Run, isWait: boolean): boolean =>
  OVER.has(state) || (isWait && state === 'paused')

function exitOf({ state, counts }: Run): ExitCode {
  if (state === 'paused') return EXIT.conflict
  const others = counts.refailed + counts.unknown + counts.expired + counts.cancelled
  if (state === 'done' && others === 0) return EXIT.ok
  return counts.resolved > 0 ? EXIT.partial : EXIT.failure
}
