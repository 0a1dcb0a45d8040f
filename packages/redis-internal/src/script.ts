import { createHash } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { Clock } from '@redrive/runtime'
import { withTimeout } from '@redrive/runtime/internal'
import { type Argument, portOf, type RedisClient } from './client.ts'

export interface Script {
  readonly text: string
  readonly sha: string
}

export function script(text: string): Script {
  return { text, sha: createHash('sha1').update(text).digest('hex') }
}

/** Runs a script on the server. Rejects with `OUTCOME_UNKNOWN` when the server does not respond in time. */
export type ScriptRunner = (
  script: Script,
  keys: readonly string[],
  args: readonly Argument[],
) => Promise<unknown>

export interface ScriptRunnerOptions {
  readonly client: RedisClient
  readonly timeoutMs: number
  /** Whether texts of a reply are strings or buffers. */
  readonly replies: 'text' | 'bytes'
  readonly clock?: Clock
}

/** Creates a function that runs scripts with this client. */
export function scriptRunner(options: ScriptRunnerOptions): ScriptRunner {
  const { client, timeoutMs, replies, clock } = options
  const port = portOf(client, replies)

  /** Sends a script again when needed: the server drops scripts on a restart, on SCRIPT FLUSH and after a fail-over. */
  const evaluate: ScriptRunner = async ({ text, sha }, keys, args) => {
    try {
      return await port.evalSha(sha, keys, args)
    } catch (error) {
      if (!isReply(error, 'NOSCRIPT')) throw error
      return await port.eval(text, keys, args)
    }
  }
  const onTimeout = () => {
    throw noResponse(timeoutMs)
  }
  return (one, keys, args) => withTimeout(evaluate(one, keys, args), timeoutMs, onTimeout, clock)
}

/**
 * Checks the code of an error reply, which is its first word; clients have no field for it. Servers before
 * version 7 add their own text around an error of a command in a script.
 */
export function isReply(error: unknown, code: string): boolean {
  return error instanceof Error && new RegExp(`(^|-)${code} `).test(error.message)
}

const noResponse = (timeoutMs: number) =>
  new RedriveError(
    'OUTCOME_UNKNOWN',
    `Redis did not respond within ${timeoutMs} ms. The command may or may not have been applied. Sending it again is safe.`,
  )
