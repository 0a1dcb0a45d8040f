import { withTimeout } from '@redrive/runtime'
import type { Caller } from '../access/caller.ts'
import { Refusal } from '../access/refusal.ts'

/** 8: several tabs of one person. */
const PER_PERSON = 8
/** 200 in one process: each asks the database twice a second. */
const STREAMS_MAX = 200
/** An hour: then whoever looks comes in again, and is asked who they are. */
const LIFE_MS = 3_600_000
/** 15 s: proxies end what is silent for half a minute. */
const BEAT_MS = 15_000
const RETRY_MS = 10_000

/** The answers that go on. Bounded, and ended together when the server stops. */
export class Streams {
  readonly #stopping = new AbortController()
  readonly #open = new Map<string, number>()
  #total = 0

  stop(): void {
    this.#stopping.abort()
  }

  /** A place, or a refusal. The signal ends with the place. */
  take({ person }: Caller, closed: AbortSignal): { signal: AbortSignal; leave: () => void } {
    const mine = this.#open.get(person) ?? 0
    if (mine >= PER_PERSON || this.#total >= STREAMS_MAX) {
      const detail = `Too many answers are going on at once; ${PER_PERSON} are allowed. Close some.`
      throw new Refusal('too_many_requests', detail, { retryAfterMs: RETRY_MS })
    }
    this.#open.set(person, mine + 1)
    this.#total += 1
    const life = AbortSignal.timeout(LIFE_MS)
    const signal = AbortSignal.any([closed, this.#stopping.signal, life])
    return { signal, leave: once(() => this.#leave(person)) }
  }

  #leave(person: string): void {
    const left = (this.#open.get(person) ?? 1) - 1
    if (left === 0) this.#open.delete(person)
    else this.#open.set(person, left)
    this.#total -= 1
  }
}

function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    work()
  }
}

/** One JSON document in each line. */
export async function* linesOf(answers: AsyncIterable<unknown>): AsyncGenerator<string> {
  for await (const answer of answers) yield `${JSON.stringify(answer)}\n`
}

/** Server-sent events, and a comment whenever nothing happens for a while. */
export async function* eventsOf(
  answers: AsyncIterable<unknown>,
  beatMs: number = BEAT_MS,
): AsyncGenerator<string> {
  const iterator = answers[Symbol.asyncIterator]()
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
