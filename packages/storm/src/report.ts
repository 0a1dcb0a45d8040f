import { CALM_MS, type StormOptions, type StormResult } from './storm.ts'
import { type Panel, plot } from './plot.ts'
import type { NamedPolicy } from './policies.ts'

/** One policy and its result. */
export interface PolicyResult {
  readonly policy: NamedPolicy
  readonly result: StormResult
}

/** The goals of a policy: little more than one call per message, no good message given up, no second wave. */
export const GOALS = { attemptsPerMessage: 1.05, falseDeadLetters: 0, drain: 1.3, peak: 2 } as const

/**
 * Returns the drain time relative to the minimum; undefined when it had not drained at the end of the run. 1 when the
 * outage leaves no backlog: then there is nothing to drain.
 */
export function drainRatio({ drainMs, minimumMs }: StormResult): number | undefined {
  if (drainMs === undefined) return undefined
  return minimumMs === 0 ? 1 : drainMs / minimumMs
}

/** Returns a value above its goal, with as many digits as show that it is above. */
function aboveText(value: number, goal: number, digits: number): string {
  const text = value.toFixed(digits)
  return Number(text) > goal || digits >= DIGITS_MAX ? text : aboveText(value, goal, digits + 1)
}

/** 12 digits: fewer than the rounding errors of a sum. */
const DIGITS_MAX = 12

/** Returns the goals that were not met, as text; empty when all were met. */
export function shortcomings(result: StormResult): readonly string[] {
  const ratio = drainRatio(result)
  const short: string[] = []
  if (result.attemptsPerMessage > GOALS.attemptsPerMessage) {
    const attempts = aboveText(result.attemptsPerMessage, GOALS.attemptsPerMessage, 2)
    short.push(`${attempts} attempts per message`)
  }
  if (result.falseDeadLetters > GOALS.falseDeadLetters) {
    const percent = aboveText(result.falseDeadLetters * 100, GOALS.falseDeadLetters * 100, 1)
    short.push(`${percent} % of good messages given up`)
  }
  if (ratio === undefined) short.push('it does not drain')
  else if (ratio > GOALS.drain)
    short.push(`drains in ${aboveText(ratio, GOALS.drain, 2)} x the shortest time`)
  if (result.peak > GOALS.peak)
    short.push(`peak of ${aboveText(result.peak, GOALS.peak, 1)} x the arrivals`)
  return short
}

/** The options of an outage that all compared policies share. */
export type Weather = Omit<StormOptions, 'policy'>

/** A little more than the slowest policy that drains. The graph of a policy that never drains is cut. */
const SHOWN_SHARE = 1.15
/** Seconds to show after the outage when no policy drains. */
const AFTER_S = 120

/** Draws all policies on one scale, as an SVG document. */
export function drawing(title: string, weather: Weather, played: readonly PolicyResult[]): string {
  const outageFromS = CALM_MS / 1_000
  const outageUntilS = outageFromS + weather.outageMs / 1_000
  const drained = played.filter(({ result }) => result.drainMs !== undefined)
  const longest = Math.max(0, ...drained.map(({ result }) => result.load.length))
  return plot({
    title,
    panels: played.map(panelOf),
    arrivalsPerSecond: weather.arrivalsPerSecond,
    capacityPerSecond: weather.capacityPerSecond,
    outageFromS,
    outageUntilS,
    seconds: longest === 0 ? outageUntilS + AFTER_S : Math.ceil(longest * SHOWN_SHARE),
  })
}

function panelOf({ policy, result }: PolicyResult): Panel {
  const short = shortcomings(result)
  return {
    title: `${policy.name}: ${policy.title}`,
    verdict: short.length === 0 ? 'meets all goals' : short.join(', '),
    isGood: short.length === 0,
    load: result.load,
  }
}

/** Returns a standalone page: picture, figures and their meaning. It loads no external resources. */
export function pageOf(title: string, weather: Weather, played: readonly PolicyResult[]): string {
  const rows = played.map(
    ({ policy, result }) => `<tr><th scope="row">${escaped(policy.name)}</th>
<td>${result.attemptsPerMessage.toFixed(3)}</td><td>${(result.falseDeadLetters * 100).toFixed(1)} %</td>
<td>${drainRatio(result)?.toFixed(2) ?? 'never'}</td><td>${result.peak.toFixed(2)}</td></tr>`,
  )
  return `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>${escaped(title)}</title>
<style>body{font:15px/1.5 system-ui,sans-serif;color:#1f2933;max-width:60rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse}th,td{padding:.3rem .8rem;text-align:right;border-bottom:1px solid #e4e7eb}th:first-child{text-align:left}</style>
<h1>${escaped(title)}</h1>
${drawing(title, weather, played)}
<table><thead><tr><th>policy</th><th>attempts per message</th><th>good ones given up</th><th>drain / shortest</th><th>peak / arrivals</th></tr></thead>
<tbody>${rows.join('\n')}
<tr><th scope="row">goal</th><td>${GOALS.attemptsPerMessage}</td><td>0 %</td><td>${GOALS.drain}</td><td>${GOALS.peak}</td></tr></tbody></table>
<p>${weather.arrivalsPerSecond} messages arrive each second, the dependency serves ${weather.capacityPerSecond}. It ${weather.kind === 'refuse' ? 'refuses everything' : 'serves a fifth of that'} for ${weather.outageMs / 1_000} s, with up to ${weather.concurrency} attempts in flight. Seed ${weather.seed}: the same seed gives the same run.</p>
</html>
`
}

const escaped = (text: string) => text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`)
