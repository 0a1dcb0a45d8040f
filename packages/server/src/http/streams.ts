import { withTimeout } from '@redrive/runtime/internal'
import type { Caller } from '../access/caller.ts'
import { ProblemError } from '../access/problem-error.ts'

/** 8 streams per user, for several browser tabs. */
const PER_PERSON = 8
/** 200 streams per process. Each one queries the database twice a second. */
const STREAMS_MAX = 200
/** 1 h: then the client must connect again. */
const LIFE_MS = 3_600_000
/** 5 s between two checks of the permissions, so that a stream ends within 10 s of their end. */
const RECHECK_MS = 5_000
/** 15 s: proxies close connections that are idle for 30 s. */
const HEARTBEAT_MS = 15_000
const RETRY_MS = 10_000

/** The open response streams. Their number is limited, and they end when the server stops. */
export class Streams {
  readonly #stopping = new AbortController()
  readonly #open = new Map<string, number>()
  #total = 0

  /** Fires when the server stops. */
  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  stop(): void {
    this.#stopping.abort()
  }

  /**
   * Reserves a slot for a stream, or throws when too many are open. The signal fires when the stream must end: also
   * when `isAllowed` is no longer true.
   */
  take(
    { person }: Caller,
    closed: AbortSignal,
    isAllowed: () => Promise<boolean>,
  ): { signal: AbortSignal; leave: () => void } {
    const open = this.#open.get(person) ?? 0
    if (open >= PER_PERSON || this.#total >= STREAMS_MAX) {
      const detail = `Too many open streams (maximum ${PER_PERSON} per user). Close some and retry.`
      throw new ProblemError('too_many_requests', detail, { retryAfterMs: RETRY_MS })
    }
    this.#open.set(person, open + 1)
    this.#total += 1
    const life = AbortSignal.timeout(LIFE_MS)
    const denied = new AbortController()
    const endChecks = watchPermissions(isAllowed, () => denied.abort())
    const signal = AbortSignal.any([closed, this.#stopping.signal, life, denied.signal])
    const leave = once(() => {
      endChecks()
      this.#leave(person)
    })
    return { signal, leave }
  }

  #leave(person: string): void {
    const left = (this.#open.get(person) ?? 1) - 1
    if (left === 0) this.#open.delete(person)
    else this.#open.set(person, left)
    this.#total -= 1
  }
}

/**
 * Calls `onDenied` when the caller is no longer allowed. It is also called if a check fails: then the client connects
 * again. Returns a function that ends the checks.
 */
export function watchPermissions(
  isAllowed: () => Promise<boolean>,
  onDenied: () => void,
): () => void {
  const check = () => void isAllowed().then((allowed) => void (allowed || onDenied()), onDenied)
  const timer = setInterval(check, RECHECK_MS).unref()
  return () => clearInterval(timer)
}

function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    work()
  }
}

/** Serializes values as JSON Lines. */
export async function* linesOf(values: AsyncIterable<unknown>): AsyncGenerator<string> {
  for await (const value of values) yield `${JSON.stringify(value)}\n`
}

/** Serializes values as server-sent events. While there is no value, it sends a comment every `beatMs`. */
export async function* eventsOf(
  values: AsyncIterable<unknown>,
  beatMs: number = HEARTBEAT_MS,
): AsyncGenerator<string> {
  const iterator = values[Symbol.asyncIterator]()
  try {
    let next = iterator.next()
    for (;;) {
      const got = await withTimeout(next, beatMs, () => undefined)
      if (got === undefined) yield ': beat\n\n'
      else if (got.done === true) return
      else {
        yield `data: ${JSON.stringify(got.value)}\n\n`
        next = iterator.next()
      }
    }
  } finally {
    await iterator.return?.()
  }
}
