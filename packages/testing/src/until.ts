import { inspect } from 'node:util'
import { type Duration, formatDuration } from '@redrive/core'
import type { Awaitable } from '@redrive/runtime'
import { withTimeout } from '@redrive/runtime/internal'
import { millisOf } from './millis.ts'
import { pollPauseMs } from './poll-pause.ts'

/** 25 s: much longer than a healthy test waits, shorter than the usual 30 s of an integration test. */
const TIMEOUT = '25s'
/** 10 ms between the first calls of the probe: short compared with any broker. */
const FIRST_PAUSE_MS = 10
/** 1 s: after a stall of the machine the last call still gets the time to return. */
const LAST_CALL_MS = 1_000
/** 1,000 characters of a value in an error: the start shows what is wrong. */
const SHOWN_CHARACTERS = 1_000

/** The result of `until`: the value of the probe without the values that mean "not yet". */
export type Accepted<T> = Exclude<T, false | null | undefined>

/** Limits of a wait in real time. */
export interface WaitOptions {
  /** Longest wait; default 25 s. */
  readonly timeout?: Duration
}

/** How `until` waits. */
export interface UntilOptions<T> extends WaitOptions {
  /** Time between two calls of the probe; default 5 % of the time waited so far, at least 10 ms, at most 250 ms. */
  readonly interval?: Duration
  /** Returns whether a value ends the wait; default: every value but `false`, `null` and `undefined` does. */
  readonly accept?: (value: Accepted<T>) => boolean
}

/** Marks the end of a wait, so that a wait inside a probe also ends the wait around it. */
class WaitTimeout extends Error {
  override readonly name = 'WaitTimeout'
}

/**
 * Calls the probe until it returns a value other than `false`, `null` and `undefined`, and returns that
 * value. Waits in real time; with a `FakeClock` use `clock.runUntil`.
 *
 * A probe that throws is called again. At the timeout `until` rejects with an error that names `what`,
 * the time waited and the last value or error of the probe.
 *
 * ```ts
 * await until('the order is paid', () => paid.has(order.id))
 * const run = await until('the run is done', () => catalog.replays.run(id), {
 *   accept: ({ state }) => state === 'done',
 *   timeout: '1m',
 * })
 * ```
 */
export async function until<T>(
  what: string,
  probe: () => Awaitable<T>,
  { timeout = TIMEOUT, interval, accept = () => true }: UntilOptions<T> = {},
): Promise<Accepted<T>> {
  const startedAt = performance.now()
  const endsAt = startedAt + millisOf(timeout)
  const intervalMs = interval === undefined ? undefined : millisOf(interval)
  for (;;) {
    const seen = await call(probe, Math.max(endsAt - performance.now(), LAST_CALL_MS))
    if (seen.kind === 'value' && isFound(seen.value) && accept(seen.value)) return seen.value
    const now = performance.now()
    if (now >= endsAt) throw timedOut(what, now - startedAt, seen)
    const pauseMs =
      intervalMs ?? Math.min(pollPauseMs(now - startedAt, FIRST_PAUSE_MS), endsAt - now)
    await new Promise((resolve) => setTimeout(resolve, pauseMs))
  }
}

/**
 * Returns the result of `work`. Rejects with an error that names `what` when it takes longer than the
 * timeout: a promise that hangs then fails its own test, not the whole run.
 */
export function within<T>(
  what: string,
  work: Awaitable<T>,
  { timeout = TIMEOUT }: WaitOptions = {},
): Promise<T> {
  const timeoutMs = millisOf(timeout)
  return withTimeout(work, timeoutMs, () => {
    throw timedOut(what, timeoutMs, HANGS)
  })
}

type ProbeResult<T> =
  | { readonly kind: 'value'; readonly value: T }
  | { readonly kind: 'error'; readonly error: unknown }
  | { readonly kind: 'hangs' }

const HANGS = { kind: 'hangs' } as const

function call<T>(probe: () => Awaitable<T>, timeoutMs: number): Promise<ProbeResult<T>> {
  const calling = async (): Promise<ProbeResult<T>> => {
    try {
      return { kind: 'value', value: await probe() }
    } catch (error) {
      if (error instanceof WaitTimeout) throw error
      return { kind: 'error', error }
    }
  }
  return withTimeout(calling(), timeoutMs, () => HANGS)
}

const isFound = <T>(value: T): value is Accepted<T> =>
  value !== false && value !== null && value !== undefined

function timedOut(what: string, waitedMs: number, seen: ProbeResult<unknown>): WaitTimeout {
  const message = `Timed out after ${formatDuration(Math.round(waitedMs))} waiting for: ${what}. ${shown(seen)}`
  return new WaitTimeout(message, seen.kind === 'error' ? { cause: seen.error } : {})
}

function shown(seen: ProbeResult<unknown>): string {
  switch (seen.kind) {
    case 'value':
      return `Last value: ${clipped(inspect(seen.value, { depth: 4 }))}`
    case 'error':
      return `Last error: ${clipped(String(seen.error))}`
    case 'hangs':
      return 'The call has not returned.'
  }
}

const clipped = (text: string) =>
  text.length > SHOWN_CHARACTERS ? `${text.slice(0, SHOWN_CHARACTERS)}…` : text
