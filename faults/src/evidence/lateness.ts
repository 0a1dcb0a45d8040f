import type { Evidence, Violation } from './evidence.ts'
import type { Entry } from './history.ts'
import { isDisturbed, type Span, standstillsIn } from './stalls.ts'

/** A delay, and whether a process was stalled while it was measured. */
export interface Late {
  readonly ms: number
  readonly isDisturbed: boolean
}

/** Sorted, the smallest delay first. */
export type Lateness = readonly Late[]

/**
 * Returns how late each retry was: the time from the failure to the next start, minus its
 * configured delay.
 */
export function retryLateness({ entries }: Evidence, delayMs: number): Lateness {
  const failedAt = new Map<string, number>()
  const waits: Span[] = []
  for (const entry of entries) {
    if (entry.what === 'failed') failedAt.set(entry.id, entry.at)
    const from = entry.what === 'handler_started' ? failedAt.get(entry.id) : undefined
    if (from !== undefined) waits.push({ from, to: entry.at })
  }
  return latenessOf(entries, waits, (waitedMs) => waitedMs - delayMs)
}

/**
 * Returns how long after acceptance each message started. A commit may be visible before its
 * response arrives.
 */
export function startLateness({ entries }: Evidence, isMeant: (id: string) => boolean): Lateness {
  const waits = firstStarts(entries, 'acknowledged', isMeant)
  return latenessOf(entries, waits, (waitedMs) => Math.max(0, waitedMs))
}

/**
 * Returns the same for a delay that the producer requested. It counts from the time when the
 * message is added.
 */
export function delayLateness(
  { entries }: Evidence,
  isMeant: (id: string) => boolean,
  delayMs: number,
): Lateness {
  const waits = firstStarts(entries, 'attempted', isMeant)
  return latenessOf(entries, waits, (waitedMs) => waitedMs - delayMs)
}

/** Returns how long each message took from the begin of its transaction to the response to its commit. */
export function addLateness({ entries }: Evidence, isMeant: (id: string) => boolean): Lateness {
  const begun = new Map<string, number>()
  const waits: Span[] = []
  for (const entry of entries) {
    if (entry.what === 'attempted' && isMeant(entry.id)) begun.set(entry.id, entry.at)
    const from = entry.what === 'acknowledged' ? begun.get(entry.id) : undefined
    if (from !== undefined) waits.push({ from, to: entry.at })
  }
  return latenessOf(entries, waits, (tookMs) => tookMs)
}

/** Returns the time from the producer's entry to the first start of each message. */
function firstStarts(
  entries: readonly Entry[],
  since: 'attempted' | 'acknowledged',
  isMeant: (id: string) => boolean,
): readonly Span[] {
  const begun = new Map<string, number>()
  const started = new Map<string, number>()
  for (const entry of entries) {
    if (entry.what === since && isMeant(entry.id)) begun.set(entry.id, entry.at)
    const isFirst = entry.what === 'handler_started' && !started.has(entry.id)
    if (isFirst) started.set(entry.id, entry.at)
  }
  return [...begun].flatMap(([id, from]) => {
    const to = started.get(id)
    return to === undefined ? [] : [{ from, to }]
  })
}

function latenessOf(
  entries: readonly Entry[],
  waits: readonly Span[],
  lateMs: (waitedMs: number) => number,
): Lateness {
  const standstills = standstillsIn(entries)
  const all = waits.map((wait) => ({
    ms: lateMs(wait.to - wait.from),
    isDisturbed: isDisturbed(wait, standstills),
  }))
  return all.sort((a, b) => a.ms - b.ms)
}

const earliestOf = (lateness: Lateness) => lateness[0]?.ms ?? 0

/** Returns a percentile of sorted numbers; 0 when there are none. */
export const percentile = (sorted: readonly number[], percent: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? 0

/** Returns a percentile of the delays. */
export const latenessAt = (lateness: Lateness, percent: number): number =>
  percentile(
    lateness.map(({ ms }) => ms),
    percent,
  )

export function tellPunctual(what: string, lateness: Lateness): string {
  return `${what} late by ${earliestOf(lateness)} ms at least and ${latenessAt(lateness, 99)} ms at p99`
}

/**
 * Removes late entries measured during a stall, because the machine may be the cause. Entries that
 * were on time despite a stall stay.
 */
export const judgedOf = <L extends Late>(lateness: readonly L[], lateMs: number): readonly L[] =>
  lateness.filter((one) => one.ms <= lateMs || !one.isDisturbed)

/** Checks that nothing is earlier than two clocks may differ, and that 99 in a hundred are on time. */
export function checkPunctual(
  what: string,
  lateness: Lateness,
  lateMs: number,
  { clocksMs = 0, percent = 99 }: { readonly clocksMs?: number; readonly percent?: number } = {},
): readonly Violation[] {
  const earliest = earliestOf(lateness)
  const judged = judgedOf(lateness, lateMs)
  const latest = latenessAt(judged, percent)
  return [
    ...(earliest < -clocksMs ? [violation(`${what} ran ${-earliest} ms early`)] : []),
    ...(latest > lateMs ? [violation(`${what} ran ${latest} ms late, at p${percent}`)] : []),
    ...checkJudged(what, judged.length, lateness.length),
  ]
}

/** Checks that at least half of the entries could be judged. Otherwise the run proves nothing. */
export const checkJudged = (what: string, judged: number, all: number): readonly Violation[] =>
  judged * 2 >= all
    ? []
    : [violation(`only ${judged} of ${all} can be judged because the machine was stalled: ${what}`)]

const violation = (text: string): Violation => ({ rule: 'scenario', text })
