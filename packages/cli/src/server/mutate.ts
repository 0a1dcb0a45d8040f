import { type Output, ApiError, type Client, type Input, type PlainOperation } from '@redrive/api'
import { ROUTES } from '@redrive/api/internal'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { reasonOf } from '../failure.ts'
import { canAsk, type CommonOptions, type Io } from '../io.ts'
import { print, say } from '../print.ts'
import { safe, safeJson } from '../text/safe.ts'

/** Sends a change. With `--dry-run`, only prints the request and returns undefined. */
export async function mutate<K extends PlainOperation>(
  io: Io,
  client: Client,
  options: CommonOptions,
  operation: K,
  input: Input<K>,
): Promise<{ readonly output: Output<K> } | undefined> {
  if (options.dryRun) {
    printRequest(io, options, operation, input)
    return undefined
  }
  // All retries share one key, so the server applies the change at most once.
  const call = { signal: io.signal, idempotencyKey: crypto.randomUUID() }
  const send = () => client.call(operation, input, call)
  try {
    return { output: await send() }
  } catch (error) {
    if (isInterrupted(io, error)) throw mayBeApplied(EXIT.interrupted, 'Interrupted', error)
    if (!isResponseLost(error)) throw error
    return { output: await retry(io, send, error) }
  }
}

/** 15 s in total. A restart of the server takes about that long. */
const RETRY_DELAYS_MS = [1_000, 2_000, 4_000, 8_000]

async function retry<T>(io: Io, send: () => Promise<T>, firstError: unknown): Promise<T> {
  let last = firstError
  for (const ms of RETRY_DELAYS_MS) {
    say(io)`${noResponse(last)}. Retrying; the change is applied at most once.`
    await io.sleep(ms, io.signal)
    try {
      return await send()
    } catch (error) {
      if (isInterrupted(io, error)) throw mayBeApplied(EXIT.interrupted, 'Interrupted', error)
      if (!isOutcomeUnknown(error)) throw error
      last = error
    }
  }
  throw mayBeApplied(EXIT.failure, noResponse(last), last)
}

/** Returns whether the command was interrupted before a response arrived. */
const isInterrupted = (io: Io, error: unknown): boolean =>
  io.signal.aborted && !(error instanceof ApiError)

function noResponse(error: unknown): string {
  const { problem, cause } = error as Partial<ApiError>
  const why = problem === undefined ? reasonOf(cause) : `${problem.status} ${problem.title}`
  return `The response did not arrive: ${why}`
}

const mayBeApplied = (exitCode: ExitCode, why: string, cause: unknown) =>
  new CommandError(
    exitCode,
    `${why}. The change may have been applied. Check before you repeat the command.`,
    { cause },
  )

/** Error codes of a connection that was never opened, so the server did not get the request. */
const UNSENT: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'UND_ERR_CONNECT_TIMEOUT',
  'CERT_HAS_EXPIRED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'ERR_TLS_CERT_ALTNAME_INVALID',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

/** Statuses of a proxy that got no response. The server itself returns neither. */
const PROXY_STATUSES: ReadonlySet<number> = new Set([502, 504])

/** Returns whether the server may have got the request and the response is unknown. */
function isResponseLost(error: unknown): boolean {
  if (error instanceof ApiError) return PROXY_STATUSES.has(error.problem.status)
  const code = networkCodeOf(error)
  return code !== undefined && !UNSENT.has(code)
}

/** Errors of a retry that do not show whether the first request was applied. */
const TO_REPEAT: ReadonlySet<ApiError['code']> = new Set(['in_progress', 'too_many_requests'])

/** Returns whether the outcome of the change is still unknown after a retry failed with this error. */
function isOutcomeUnknown(error: unknown): boolean {
  if (!(error instanceof ApiError)) return networkCodeOf(error) !== undefined
  return error.problem.status >= 500 || TO_REPEAT.has(error.code)
}

/** Returns the code of a network error, or undefined. The code of a failed `fetch` is in its cause. */
function networkCodeOf(error: unknown): string | undefined {
  if (!(error instanceof TypeError)) return undefined
  const { code } = (error.cause ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' ? code : undefined
}

function printRequest<K extends PlainOperation>(
  io: Io,
  options: CommonOptions,
  operation: K,
  input: Input<K>,
): void {
  const { method, path, summary } = ROUTES[operation]
  const request = { operation, method, path, ...(input as object) }
  print(io, options, {
    json: { dryRun: true, request },
    human: (page) => {
      page.line`Would send: ${summary} (${method} ${path}). Nothing was changed.`
      page.block(safeJson(input, 2))
    },
  })
}

/** Returns whether the caller's approval was rejected, but another person may approve. */
export const isForAnother = (error: unknown): error is ApiError =>
  error instanceof ApiError &&
  (error.code === 'forbidden' || error.problem.needsAnotherPerson === true)

/** Throws when a prompt is needed and no terminal can show it. */
export function expectAnswer(io: Io, options: CommonOptions, question: string): void {
  if (options.yes || options.dryRun || canAsk(io)) return
  throw new CommandError(
    EXIT.usage,
    `${question} Cannot prompt without a terminal. Add --yes to confirm.`,
  )
}

/** Prompts the user, unless `--yes` or `--dry-run` is set. Throws when the user declines or cannot answer. */
export async function confirmed(io: Io, options: CommonOptions, question: string): Promise<void> {
  expectAnswer(io, options, question)
  if (options.yes || options.dryRun) return
  // The question may contain text from message producers.
  const answer = await io.confirm(safe(question))
  if (answer === undefined) throw new CommandError(EXIT.interrupted, 'Nothing was changed.')
  if (!answer) throw new CommandError(EXIT.failure, 'Nothing was changed.')
}
