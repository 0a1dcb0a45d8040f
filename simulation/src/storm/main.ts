import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { OutageKind } from './dependency.ts'
import { type Panel, plot } from './plot.ts'
import { type NamedPolicy, POLICIES } from './policies.ts'
import { CALM_MS, type StormResult, storm } from './storm.ts'

/** What the default policy must keep to in every row. */
const GOALS = { attemptsPerMessage: 1.05, falseDeadLetters: 0, drain: 1.3, peak: 2 }

const ARRIVALS_PER_SECOND = 100
const CAPACITY_PER_SECOND = 150
const KINDS: readonly OutageKind[] = ['refuse', 'brown-out']

interface Weather {
  readonly kind: OutageKind
  readonly outageMs: number
  readonly concurrency: number
}

interface Row {
  readonly policy: NamedPolicy
  readonly result: StormResult
}

export interface StormCommand {
  /** A few rows instead of all. */
  readonly quick: boolean
  readonly directory: string
  readonly print: (text: string) => void
}

/** Plays every outage against every policy. True when the default policy kept to its goals and three textbook ones did not. */
export async function runStorm({ quick, directory, print }: StormCommand): Promise<boolean> {
  await mkdir(directory, { recursive: true })
  const failing = new Set<string>()
  let worst = 0
  print(HEADER)
  for (const weather of weathers(quick)) {
    const rows: Row[] = []
    for (const policy of POLICIES) {
      const result = await storm({
        ...weather,
        policy: policy.policy,
        arrivalsPerSecond: ARRIVALS_PER_SECOND,
        capacityPerSecond: CAPACITY_PER_SECOND,
        seed: 1,
      })
      print(rowText(weather, policy, result))
      rows.push({ policy, result })
      if (!isWithinGoals(result)) failing.add(policy.name)
      if (policy.name === OURS) worst = Math.max(worst, drainRatio(result))
    }
    await writeFile(join(directory, fileName(weather)), drawing(weather, rows))
  }
  const isGood = !failing.has(OURS) && failing.size >= 3
  print(`\nPlots: ${join(directory, '*.svg')}`)
  print(
    `${isGood ? 'PASS' : 'SHORT'} storm worst drain of the default policy ${worst.toFixed(2)} x the minimum, ${[...failing].sort().join(' ') || 'none'} failing, goal ${GOALS.drain} and at least 3 textbook policies failing`,
  )
  return isGood
}

const OURS = 'Redrive'

function weathers(quick: boolean): readonly Weather[] {
  const outages = quick ? [60_000] : [60_000, 900_000]
  const sizes = quick ? [1, 100, 1_000] : [1, 10, 100, 400, 1_000]
  return outages.flatMap((outageMs) =>
    KINDS.flatMap((kind) => sizes.map((concurrency) => ({ outageMs, kind, concurrency }))),
  )
}

const drainRatio = ({ drainMs, minimumMs }: StormResult) =>
  drainMs === undefined ? Number.POSITIVE_INFINITY : drainMs / minimumMs

function isWithinGoals(result: StormResult): boolean {
  return (
    result.attemptsPerMessage <= GOALS.attemptsPerMessage &&
    result.falseDeadLetters <= GOALS.falseDeadLetters &&
    drainRatio(result) <= GOALS.drain &&
    result.peak <= GOALS.peak
  )
}

const HEADER = `${'OUTAGE'.padEnd(16)}${'K'.padStart(5)}  ${'POLICY'.padEnd(9)}${'ATTEMPTS/MSG'.padStart(13)}${'FALSE DEAD LETTERS'.padStart(20)}${'DRAIN/MINIMUM'.padStart(15)}${'PEAK/ARRIVALS'.padStart(15)}`

function rowText(
  { kind, outageMs, concurrency }: Weather,
  { name }: NamedPolicy,
  result: StormResult,
): string {
  const cells = [
    `${outageMs / 1_000} s ${kind}`.padEnd(16),
    String(concurrency).padStart(5),
    `  ${name.padEnd(9)}`,
    result.attemptsPerMessage.toFixed(3).padStart(13),
    `${(result.falseDeadLetters * 100).toFixed(1)} %`.padStart(20),
    drainText(result).padStart(15),
    result.peak.toFixed(2).padStart(15),
  ]
  return `${cells.join('')}  ${isWithinGoals(result) ? 'ok' : 'fails'}`
}

function drainText(result: StormResult): string {
  return result.drainMs === undefined ? 'never' : drainRatio(result).toFixed(2)
}

const fileName = ({ kind, outageMs, concurrency }: Weather) =>
  `storm-${outageMs / 1_000}s-${kind}-k${concurrency}.svg`

function drawing(weather: Weather, rows: readonly Row[]): string {
  const { kind, outageMs, concurrency } = weather
  const outageFromS = CALM_MS / 1_000
  const ours = rows.find(({ policy }) => policy.name === OURS)
  const seconds = Math.ceil((ours?.result.load.length ?? 600) * 1.15)
  return plot({
    title: `${outageMs / 1_000} s ${kind}, ${concurrency} attempts in flight at most`,
    panels: rows.map(panelOf),
    arrivalsPerSecond: ARRIVALS_PER_SECOND,
    capacityPerSecond: CAPACITY_PER_SECOND,
    outageFromS,
    outageUntilS: outageFromS + outageMs / 1_000,
    seconds,
  })
}

function panelOf({ policy, result }: Row): Panel {
  const title =
    policy.name === OURS ? `Redrive: ${policy.title}` : `${policy.name}: ${policy.title}`
  const lost = `${(result.falseDeadLetters * 100).toFixed(1)} % of good messages given up`
  const drained =
    result.drainMs === undefined ? 'never drained' : `drained in ${drainText(result)} x the minimum`
  const verdict = `${result.attemptsPerMessage.toFixed(2)} attempts each · ${lost} · ${drained}`
  return { title, verdict, isGood: isWithinGoals(result), load: result.load }
}
