import { withTimeout } from '@redrive/runtime'
import type { Severity, Unreadable } from './finding.ts'

/** 10 s: a management API is slow on a loaded broker, and someone is waiting. */
export const ANSWER_MS = 10_000

/** Reads facts one by one, and notes which could not be read and why. */
export class Reading {
  readonly unreadable: Unreadable[] = []

  /** Undefined, and a note, when it cannot be read. */
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

/** The reason at the bottom: "fetch failed" alone helps nobody. Never with an address that has a password in it. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0])
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error
    ? reasonOf(error.cause)
    : withoutPassword(error.message || error.name)
}

const withoutPassword = (text: string) => text.replace(/\/\/[^@/\s]*@/g, '//')

/** Of the first that answers. When none does, why the last one did not. */
export async function firstAnswer<T>(
  urls: readonly string[],
  ask: (url: string) => Promise<T>,
): Promise<T> {
  const [url = '', ...others] = urls
  return others.length === 0 ? ask(url) : ask(url).catch(() => firstAnswer(others, ask))
}

/** Rejects when there is no answer in time. The work itself must end by its own timeouts. */
export const answerWithin = <T>(timeoutMs: number, work: Promise<T>): Promise<T> =>
  withTimeout(work, timeoutMs, () => {
    throw new Error(`no answer in ${timeoutMs} ms`)
  })
