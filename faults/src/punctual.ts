import type { Evidence, Violation } from './evidence.ts'
import type { Entry } from './history.ts'

/** A retry is late by the time from the moment its attempt failed to the next start, less its delay. */
export function retryLateness({ entries }: Evidence, delayMs: number): readonly number[] {
  const failedAt = new Map<string, number>()
  const lateness: number[] = []
  for (const entry of entries) {
    if (entry.what === 'failed') failedAt.set(entry.id, entry.at)
    const since = entry.what === 'handler_started' ? failedAt.get(entry.id) : undefined
    if (since !== undefined) lateness.push(entry.at - since - delayMs)
  }
  return lateness.sort((a, b) => a - b)
}

/** How long after it was accepted each message began to run. A commit may be seen before its answer is. */
export function startLateness(
  { entries }: Evidence,
  isMeant: (id: string) => boolean,
): readonly number[] {
  return firstStarts(entries, 'acknowledged', isMeant).map((ms) => Math.max(0, ms))
}

/** The same for a delay that its producer asked for, which counts from when the message is added. */
export function delayLateness(
  { entries }: Evidence,
  isMeant: (id: string) => boolean,
  delayMs: number,
): readonly number[] {
  return firstStarts(entries, 'attempted', isMeant).map((ms) => ms - delayMs)
}

/** From what its producer wrote to the first start of each message, sorted. */
function firstStarts(
  entries: readonly Entry[],
  since: 'attempted' | 'acknowledged',
  isMeant: (id: string) => boolean,
): readonly number[] {
  const begun = new Map<string, number>()
  const started = new Map<string, number>()
  for (const entry of entries) {
    if (entry.what === since && isMeant(entry.id)) begun.set(entry.id, entry.at)
    const isFirst = entry.what === 'handler_started' && !started.has(entry.id)
    if (isFirst) started.set(entry.id, entry.at)
  }
  const waits = [...begun].flatMap(([id, at]) => {
    const startedAt = started.get(id)
    return startedAt === undefined ? [] : [startedAt - at]
  })
  return waits.sort((a, b) => a - b)
}

const earliestOf = (lateness: readonly number[]) => lateness[0] ?? 0

/** One of so many in a hundred, of sorted numbers; 0 when there are none. */
export const percentile = (sorted: readonly number[], percent: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? 0

export function tellPunctual(what: string, lateness: readonly number[]): string {
  return `${what} late by ${earliestOf(lateness)} ms at least and ${percentile(lateness, 99)} ms at p99`
}

/** Never early, and on time for all but one in a hundred. */
export function checkPunctual(
  what: string,
  lateness: readonly number[],
  lateMs: number,
): readonly Violation[] {
  const earliest = earliestOf(lateness)
  const p99 = percentile(lateness, 99)
  return [
    ...(earliest < 0 ? [violation(`${what} ran ${-earliest} ms early`)] : []),
    ...(p99 > lateMs ? [violation(`one ${what} in a hundred ran more than ${p99} ms late`)] : []),
  ]
}

const violation = (text: string): Violation => ({ rule: 'scenario', text })
