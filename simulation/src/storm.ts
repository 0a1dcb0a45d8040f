import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  drawing,
  type NamedPolicy,
  type OutageKind,
  type PolicyResult,
  shortcomings,
  type StormResult,
  simulateOutage,
  TEXTBOOK,
} from '@redrive/storm'
import { drainRatio, GOALS } from '@redrive/storm/internal'

const FLEET = { arrivalsPerSecond: 100, capacityPerSecond: 150, seed: 1 } as const
const KINDS: readonly OutageKind[] = ['refuse', 'brown-out']

interface Weather {
  readonly kind: OutageKind
  readonly outageMs: number
  readonly concurrency: number
}

export interface StormCommand {
  /** Whether to play a few rows instead of all. */
  readonly quick: boolean
  readonly directory: string
  readonly print: (text: string) => void
}

/**
 * Plays every outage against every policy. Returns true when the default policy met its goals and
 * three textbook policies did not.
 */
export async function runStorm({ quick, directory, print }: StormCommand): Promise<boolean> {
  await mkdir(directory, { recursive: true })
  const failing = new Set<string>()
  let worst = 0
  print(HEADER)
  for (const weather of weathers(quick)) {
    const rows: PolicyResult[] = []
    for (const policy of TEXTBOOK) {
      const result = await simulateOutage({
        ...FLEET,
        ...weather,
        policy: policy.policy,
      })
      print(rowText(weather, policy, result))
      rows.push({ policy, result })
      if (shortcomings(result).length > 0) failing.add(policy.name)
      if (policy.name === OURS)
        worst = Math.max(worst, drainRatio(result) ?? Number.POSITIVE_INFINITY)
    }
    await writeFile(
      join(directory, fileName(weather)),
      drawing(titleOf(weather), { ...FLEET, ...weather }, rows),
    )
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
  return `${cells.join('')}  ${shortcomings(result).length === 0 ? 'ok' : 'fails'}`
}

const drainText = (result: StormResult) => drainRatio(result)?.toFixed(2) ?? 'never'

const fileName = ({ kind, outageMs, concurrency }: Weather) =>
  `storm-${outageMs / 1_000}s-${kind}-k${concurrency}.svg`

const titleOf = ({ kind, outageMs, concurrency }: Weather) =>
  `${outageMs / 1_000} s ${kind}, ${concurrency} attempts in flight at most`
