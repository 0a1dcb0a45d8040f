import { ApiError, type Client, type Run } from '@redrive/api'
import { type Duration, parseDuration } from '@redrive/core'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print, say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { resolveId } from '../server/resolve-id.ts'
import { Progress } from '../text/progress.ts'
import { endText } from './run-text.ts'

export interface WaitOptions extends CommonOptions {
  /** Waits until the run ends. A pause also ends the wait, because a script cannot resume the run. */
  readonly wait?: boolean
  /** Maximum time to wait. Default: until the run ends. */
  readonly timeout?: string
}

export async function watchReplay(io: Io, given: string, options: WaitOptions): Promise<ExitCode> {
  const timeoutMs = timeoutOf(options.timeout)
  const client = connect(io, options)
  const id = await resolveId(io, client, 'run', given)
  const run = await client.call('getReplay', { params: { id } }, { signal: io.signal })
  return follow(io, client, run, { ...options, timeoutMs })
}

interface FollowOptions extends WaitOptions {
  /** `timeout` in milliseconds, from the start of the wait. */
  readonly timeoutMs: number | undefined
}

/** Follows a run until it ends. The run continues if the user stops following it. */
export async function follow(
  io: Io,
  client: Client,
  run: Run,
  options: FollowOptions,
): Promise<ExitCode> {
  const { timeoutMs } = options
  const timeout = timeoutMs === undefined ? undefined : AbortSignal.timeout(timeoutMs)
  const signal = timeout === undefined ? io.signal : AbortSignal.any([io.signal, timeout])
  const progress = new Progress(io)
  let last = run
  try {
    last = await untilEnded(io, client, run, { signal, progress, isWait: options.wait === true })
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    progress.end()
  }
  if (io.signal.aborted) return stopFollowing(io, last, EXIT.interrupted)
  if (timeout?.aborted) return stopFollowing(io, last, EXIT.timeout)
  print(io, options, { json: last, human: (page) => endText(page, last) })
  return exitOf(last)
}

/** The longest delay of a timer in Node.js. A longer timer fires immediately. */
const TIMEOUT_MAX_MS = 2 ** 31 - 1

export function timeoutOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(text as Duration)
  if (ms !== undefined && ms > 0 && ms <= TIMEOUT_MAX_MS) return ms
  throw new CommandError(
    EXIT.usage,
    `--timeout: expected a duration such as 10m, at most 24d; got "${text}".`,
  )
}

function stopFollowing(io: Io, run: Run, exitCode: ExitCode): ExitCode {
  const why = exitCode === EXIT.timeout ? 'Timed out' : 'Interrupted'
  say(
    io,
  )`${why}. The run continues. Follow it: redrive replay watch ${run.id}  Pause it: redrive replay pause ${run.id}`
  return exitCode
}

interface FollowContext {
  readonly signal: AbortSignal
  readonly progress: Progress
  readonly isWait: boolean
}

/** Reconnects after 1 s, and later at most every 15 s. A restart of the server takes about 15 s. */
const RECONNECT_MS = 1_000
const RECONNECT_CAP_MS = 15_000

async function untilEnded(io: Io, client: Client, run: Run, context: FollowContext): Promise<Run> {
  const { signal, progress, isWait } = context
  let last = run
  let failures = 0
  while (!isEnded(last, isWait)) {
    try {
      const params = { id: run.id }
      for await (const update of client.stream('watchReplay', { params }, { signal })) {
        failures = 0
        last = update
        progress.show(update)
        if (isEnded(update, isWait)) return update
      }
    } catch (error) {
      if (signal.aborted || isFinal(error)) throw error
      progress.note('Lost the connection to the server. The run continues. Reconnecting.')
    }
    // The stream ended too early: the server restarts, or a proxy closed the connection.
    await io.sleep(Math.min(RECONNECT_CAP_MS, RECONNECT_MS * 2 ** failures), signal)
    signal.throwIfAborted()
    failures += 1
  }
  return last
}

/** Returns whether a retry cannot help. */
const isFinal = (error: unknown): boolean =>
  error instanceof ApiError && error.problem.status < 500 && error.code !== 'too_many_requests'

const ENDED: ReadonlySet<Run['state']> = new Set(['done', 'cancelled', 'plan_expired'])

const isEnded = ({ state }: Run, isWait: boolean): boolean =>
  ENDED.has(state) || (isWait && state === 'paused')

function exitOf({ state, counts }: Run): ExitCode {
  if (state === 'paused') return EXIT.conflict
  const others = counts.failed_again + counts.unknown + counts.expired + counts.cancelled
  if (state === 'done' && others === 0) return EXIT.ok
  return counts.resolved + counts.not_returned > 0 ? EXIT.partial : EXIT.failure
}
