import { withTimeout } from '@redrive/runtime/internal'
import type { Severity, Unreadable } from './finding.ts'
import { certificateHint } from './tls.ts'

/** 10 s: a management API is slow on a loaded broker, but a user waits for the result. */
export const ANSWER_MS = 10_000

/** Reads facts one by one, and records which could not be read and why. */
export class Reading {
  readonly unreadable: Unreadable[] = []

  /** Returns the fact, or records the reason and returns undefined when it cannot be read. */
  async fact<T>(
    about: { readonly what: string; readonly allow: string; readonly hides: Severity },
    read: () => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await read()
    } catch (error) {
      this.unreadable.push({ ...about, why: reasonOf(error) })
      return undefined
    }
  }
}

/** Returns the innermost cause, because "fetch failed" alone does not help. Removes passwords from addresses. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0])
  if (!(error instanceof Error)) return String(error)
  if (error.cause instanceof Error) return reasonOf(error.cause)
  const text = withoutPassword(error.message || error.name)
  const hint = certificateHint(error)
  return hint === undefined ? text : `${text}. ${hint}`
}

const withoutPassword = (text: string) => text.replace(/\/\/[^@/\s]*@/g, '//')

/** Returns the answer of the first address that works. If none works, rejects with the error of the last one. */
export async function firstAnswer<T>(
  urls: readonly string[],
  ask: (url: string) => Promise<T>,
): Promise<T> {
  const [url = '', ...others] = urls
  return others.length === 0 ? ask(url) : ask(url).catch(() => firstAnswer(others, ask))
}

/** Rejects when the answer takes too long. The work itself must have separate timeouts. */
export const answerWithin = <T>(timeoutMs: number, work: Promise<T>): Promise<T> =>
  withTimeout(work, timeoutMs, () => {
    throw new Error(`no response within ${timeoutMs} ms`)
  })
