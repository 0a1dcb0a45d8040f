import { CommandError, EXIT, EXIT_OF_PROBLEM, type ExitCode } from './exit.ts'
import type { Io } from './io.ts'
import { Page } from './text/page.ts'
import { red } from './text/painted.ts'
import { safeLines } from './text/safe.ts'

interface FailureReport {
  readonly exitCode: ExitCode
  readonly message: string
  /** Identifies the request in the log of the server. */
  readonly requestId?: string
}

/** Prints what failed and what to do, and returns the exit code. */
export async function fail(io: Io, error: unknown, isVerbose: boolean): Promise<ExitCode> {
  const { exitCode, message, requestId } = await reportOf(io, error)
  const page = new Page(io.stderr)
  const [first = '', ...others] = safeLines(message)
  page.line`${red('Error:')} ${first}`
  for (const line of others) page.line`${line}`
  if (requestId) page.line`Request id: ${requestId}`
  if (isVerbose && error instanceof Error) page.block(error.stack ?? '')
  return exitCode
}

async function reportOf(io: Io, error: unknown): Promise<FailureReport> {
  if (error instanceof CommandError) return error
  if (io.signal.aborted) return { exitCode: EXIT.interrupted, message: 'Interrupted.' }
  // Loaded only here, because most commands that fail without a server do not need it.
  const { ApiError } = await import('@redrive/api')
  if (error instanceof ApiError) {
    const { code, problem } = error
    // The detail may already contain some of them.
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
      message: `This version cannot read the response of the server. Use the same version of redrive as the server.\n${error.message}`,
    }
  }
  const message = messageOf(error)
  const hint = await certificateProblem(error)
  return { exitCode: EXIT.failure, message: hint === undefined ? message : `${message}. ${hint}.` }
}

/** Codes of errors about certificates begin or end in this way. */
const ABOUT_TLS = /^ERR_(TLS|SSL)|CERT|^UNABLE_TO_/

/** Returns what to do about a certificate of a broker or database that was rejected. */
async function certificateProblem(error: unknown): Promise<string | undefined> {
  if (!ABOUT_TLS.test(codeOf(error))) return undefined
  const { certificateHint } = await import('@redrive/doctor/internal')
  return certificateHint(error)
}

const HINTS: Readonly<Partial<Record<string, readonly string[]>>> = {
  unauthenticated: [
    'Set REDRIVE_TOKEN or REDRIVE_TOKEN_FILE to a valid token. An administrator can create one:',
    "redrive token create NAME --user SUBJECT --allow view --source '*' --config FILE",
  ],
  forbidden: ['To list your permissions: redrive whoami'],
}

/** Returns a message for any other error. The reason of a failed `fetch` is in its cause. */
function messageOf(error: unknown): string {
  if (error instanceof TypeError && error.cause instanceof Error) {
    return `Cannot connect to the server: ${reasonOf(error.cause)}. Check REDRIVE_URL, and that the server is running.`
  }
  const isUnreachable = UNREACHABLE.has(codeOf(error))
  return isUnreachable
    ? `${reasonOf(error)}. Check the address, and that the service is running.`
    : reasonOf(error)
}

/** Error codes of a database or broker that cannot be reached. */
const UNREACHABLE: ReadonlySet<string> = new Set(['ECONNREFUSED', 'ENOTFOUND', 'ETIMEDOUT'])

/**
 * Returns the reason of an error, never an empty text. A host with several addresses, such as localhost,
 * fails with one error per address and no message.
 */
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
