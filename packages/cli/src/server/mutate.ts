import {
  type Answer,
  ApiError,
  type Client,
  type Input,
  type PlainOperation,
  ROUTES,
} from '@redrive/api'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import { reasonOf } from '../failure.ts'
import { canAsk, type CommonOptions, type Io } from '../io.ts'
import { print, say } from '../print.ts'
import { safe, safeJson } from '../text/safe.ts'

/** Asks for a change, or says what would be asked for: undefined then. */
export async function mutate<K extends PlainOperation>(
  io: Io,
  client: Client,
  options: CommonOptions,
  operation: K,
  input: Input<K>,
): Promise<{ readonly answer: Answer<K> } | undefined> {
  if (options.dryRun) {
    wouldAsk(io, options, operation, input)
    return undefined
  }
  // One key for all of it: what is done already is answered, and not done again.
  const call = { signal: io.signal, idempotencyKey: crypto.randomUUID() }
  const ask = () => client.call(operation, input, call)
  try {
    return { answer: await ask() }
  } catch (error) {
    if (isStopped(io, error)) throw mayBeDone(EXIT.interrupted, 'Stopped', error)
    if (!isLost(error)) throw error
    return { answer: await again(io, ask, error) }
  }
}

/** 15 s in all: a restart of the server takes about that. */
const AGAIN_MS = [1_000, 2_000, 4_000, 8_000]

async function again<T>(io: Io, ask: () => Promise<T>, lost: unknown): Promise<T> {
  let last = lost
  for (const ms of AGAIN_MS) {
    say(io)`${noAnswer(last)}. Asking again; it is not done twice.`
    await io.sleep(ms, io.signal)
    try {
      return await ask()
    } catch (error) {
      if (isStopped(io, error)) throw mayBeDone(EXIT.interrupted, 'Stopped', error)
      if (!isOpen(error)) throw error
      last = error
    }
  }
  throw mayBeDone(EXIT.failure, noAnswer(last), last)
}

/** Asked to end before there was an answer. */
const isStopped = (io: Io, error: unknown): boolean =>
  io.signal.aborted && !(error instanceof ApiError)

function noAnswer(error: unknown): string {
  const { problem, cause } = error as Partial<ApiError>
  const why = problem === undefined ? reasonOf(cause) : `${problem.status} ${problem.title}`
  return `The answer did not arrive: ${why}`
}

const mayBeDone = (exitCode: ExitCode, why: string, cause: unknown) =>
  new CommandError(exitCode, `${why}. It may have been done: look before you ask for it again.`, {
    cause,
  })

/** Codes of a connection that never was: nobody got the request. */
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

/** What a proxy says when it heard no answer. The server itself says neither. */
const UNHEARD: ReadonlySet<number> = new Set([502, 504])

/** The server may have got the request, and its answer is not known. */
function isLost(error: unknown): boolean {
  if (error instanceof ApiError) return UNHEARD.has(error.problem.status)
  const code = networkCodeOf(error)
  return code !== undefined && !UNSENT.has(code)
}

/** Refusals of a repetition that say nothing about the first time. */
const TO_REPEAT: ReadonlySet<ApiError['code']> = new Set(['in_progress', 'too_many_requests'])

/** After an answer was lost: this one does not say what became of it either. */
function isOpen(error: unknown): boolean {
  if (!(error instanceof ApiError)) return networkCodeOf(error) !== undefined
  return error.problem.status >= 500 || TO_REPEAT.has(error.code)
}

/** Of the network; undefined: the failure is another one. `fetch` says nothing itself; its cause does. */
function networkCodeOf(error: unknown): string | undefined {
  if (!(error instanceof TypeError)) return undefined
  const { code } = (error.cause ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' ? code : undefined
}

function wouldAsk<K extends PlainOperation>(
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
      page.line`Would ask: ${summary} (${method} ${path}). Nothing was done.`
      page.block(safeJson(input, 2))
    },
  })
}

/** An approval is refused to who asks, and someone else may give it. */
export const isForAnother = (error: unknown): error is ApiError =>
  error instanceof ApiError &&
  (error.code === 'forbidden' || error.problem.needsAnotherPerson === true)

/** Throws when there is something to ask and nobody to ask it. */
export function expectAnswer(io: Io, options: CommonOptions, question: string): void {
  if (options.yes || options.dryRun || canAsk(io)) return
  throw new CommandError(
    EXIT.usage,
    `${question} There is no terminal to ask on: add --yes to go on.`,
  )
}

/** Asks a person, unless `--yes` or `--dry-run` makes that needless. Throws when they say no or nobody is there. */
export async function confirmed(io: Io, options: CommonOptions, question: string): Promise<void> {
  expectAnswer(io, options, question)
  if (options.yes || options.dryRun) return
  // It may have words of a peer in it.
  const answer = await io.confirm(safe(question))
  if (answer === undefined) throw new CommandError(EXIT.interrupted, 'Nothing was done.')
  if (!answer) throw new CommandError(EXIT.failure, 'Nothing was done.')
}
