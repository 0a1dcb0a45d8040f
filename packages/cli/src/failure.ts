import { CommandError, EXIT, EXIT_OF_PROBLEM, type ExitCode } from './exit.ts'
import type { Io } from './io.ts'
import { Page } from './text/page.ts'
import { red } from './text/painted.ts'
import { safeLines } from './text/safe.ts'

interface Failed {
  readonly exitCode: ExitCode
  readonly message: string
  /** Names the request in the logs of the server. */
  readonly requestId?: string
}

/** Says what went wrong and what to do, and answers the exit code. */
export async function fail(io: Io, error: unknown, isVerbose: boolean): Promise<ExitCode> {
  const { exitCode, message, requestId } = await failedOf(io, error)
  const page = new Page(io.stderr)
  const [first = '', ...others] = safeLines(message)
  page.line`${red('Error:')} ${first}`
  for (const line of others) page.line`${line}`
  if (requestId) page.line`Request ${requestId}`
  if (isVerbose && error instanceof Error) page.block(error.stack ?? '')
  return exitCode
}

async function failedOf(io: Io, error: unknown): Promise<Failed> {
  if (error instanceof CommandError) return error
  if (io.signal.aborted) return { exitCode: EXIT.interrupted, message: 'Stopped.' }
  // Loaded only here: most commands that fail without a server need none of it.
  const { ApiError } = await import('@redrive/api')
  if (error instanceof ApiError) {
    const { code, problem } = error
    // The detail may list them already.
    const others = (problem.problems ?? []).filter((one) => !problem.detail.includes(one))
    const message = [
      problem.detail,
      ...others.map((one) => `- ${one}`),
      ...(HINTS[code] ?? []),
    ].join('\n')
    return { exitCode: EXIT_OF_PROBLEM[code], message, requestId: problem.requestId }
  }
  const { ZodError } = await import('zod')
  if (error instanceof ZodError) {
    return {
      exitCode: EXIT.failure,
      message: `The server answered something that this version does not understand. Use the redrive of the same version.\n${error.message}`,
    }
  }
  return { exitCode: EXIT.failure, message: messageOf(error) }
}

const HINTS: Readonly<Partial<Record<string, readonly string[]>>> = {
  unauthenticated: [
    'Set REDRIVE_TOKEN or REDRIVE_TOKEN_FILE to a token that is valid. Who has the config of the server makes one:',
    "redrive token create NAME --for SUBJECT --may view --source '*' --config FILE",
  ],
  forbidden: ['redrive whoami says what you may do.'],
}

/** `fetch` says nothing itself; its cause does. */
function messageOf(error: unknown): string {
  if (error instanceof TypeError && error.cause instanceof Error) {
    return `The server cannot be reached: ${reasonOf(error.cause)}. Check REDRIVE_URL, and that the server runs.`
  }
  const isAway = UNREACHABLE.has(codeOf(error))
  return isAway
    ? `${reasonOf(error)}. Check the address, and that something answers there.`
    : reasonOf(error)
}

/** What a database or broker that is away fails with. */
const UNREACHABLE: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'ETIMEDOUT'])

/** Never nothing: a host with several addresses, as localhost is, fails with one error for each and no message. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  if (error.message) return error.message
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0])
  return codeOf(error) || error.name
}

function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown }
  return typeof code === 'string' ? code : ''
}
