import type { Weather } from '@redrive/storm'
import type { COMPARED, OUTAGES } from '../address-values.ts'
import type { Goals, SimulationResult, SimulationRequest } from '../simulation/protocol.ts'
import { quoted } from './equivalents.ts'
import { countText, highestOf, NBSP, percentText } from './numbers.ts'
import { durationText } from './times.ts'

type OutageName = (typeof OUTAGES)[number]
export type ComparedName = (typeof COMPARED)[number]

export const OUTAGE_MS: Readonly<Record<OutageName, number>> = {
  '60s': 60_000,
  '5m': 300_000,
  '15m': 900_000,
}

/** The textbook policies of the simulator. A test compares them with the package. */
export const COMPARED_TITLES: Readonly<Record<ComparedName, string>> = {
  A: '3 immediate attempts',
  B: 'Exponential 1–16 s, no jitter, 6 attempts',
  C: 'Full jitter 1–60 s, 8 attempts',
  D: 'C with a retry budget of 10 %',
  E: 'C with a breaker that pauses 30 s',
  none: 'Nothing',
}

/** The fields of the form, as in the address. */
export interface Scenario {
  readonly policy: string
  readonly outage: OutageName
  readonly kind: Weather['kind']
  readonly arrivals: string
  readonly capacity: string
  readonly inFlight: string
  readonly compare: ComparedName
}

export const DEFAULT_SCENARIO: Scenario = {
  policy: '',
  outage: '60s',
  kind: 'refuse',
  arrivals: '100',
  capacity: '150',
  inFlight: '100',
  compare: 'C',
}

/** Returns the fields that differ from the defaults, for the address. */
export const scenarioSearch = (scenario: Scenario): Partial<Scenario> =>
  Object.fromEntries(
    Object.entries(scenario).filter(
      ([name, value]) => value !== DEFAULT_SCENARIO[name as keyof Scenario],
    ),
  )

/** The same seed for everyone, so that a link shows the same numbers. */
const SEED = 1

const isWhole = (value: number, from: number, to: number): boolean =>
  Number.isInteger(value) && value >= from && value <= to

/** 2 h: a policy that does not drain is simulated for twice this time. Longer ones keep a browser busy for hours. */
const DRAIN_MAX_MS = 7_200_000
/** The share of its capacity that a dependency serves in a brown-out. */
const BROWN_OUT_SHARE = 0.2

/** Returns the time that the backlog of the outage needs with the spare capacity. A test compares it with the simulator. */
export function shortestDrainMs(weather: Weather): number {
  const { kind, outageMs, arrivalsPerSecond: arrivals, capacityPerSecond: capacity } = weather
  const served = kind === 'refuse' ? 0 : capacity * BROWN_OUT_SHARE
  return (Math.max(0, arrivals - served) * outageMs) / (capacity - arrivals)
}

/** Reads the form. `redrive simulate` accepts the same values, so that the copied command works. */
export function readScenario(
  scenario: Scenario,
): { readonly request: SimulationRequest } | { readonly problem: string } {
  const arrivals = Number(scenario.arrivals)
  const capacity = Number(scenario.capacity)
  const inFlight = Number(scenario.inFlight)
  if (!isWhole(arrivals, 1, 1_000))
    return { problem: 'Arrivals: enter a whole number from 1 to 1,000.' }
  if (!isWhole(capacity, arrivals + 1, 10_000))
    return { problem: 'Capacity: enter a whole number above the arrivals, at most 10,000.' }
  if (!isWhole(inFlight, 1, 2_000))
    return { problem: 'In flight: enter a whole number from 1 to 2,000.' }
  const weather: Weather = {
    kind: scenario.kind,
    outageMs: OUTAGE_MS[scenario.outage],
    concurrency: inFlight,
    arrivalsPerSecond: arrivals,
    capacityPerSecond: capacity,
    seed: SEED,
  }
  const drainMs = shortestDrainMs(weather)
  if (drainMs > DRAIN_MAX_MS)
    return {
      problem: `Capacity: the backlog needs at least ${durationText(drainMs)} to drain. Enter more, so that it drains within ${durationText(DRAIN_MAX_MS)}.`,
    }
  const compare = scenario.compare === 'none' ? undefined : scenario.compare
  return { request: { policy: scenario.policy, weather, compare } }
}

/** Returns the command that simulates the same. It reads the policy from a file. */
export function simulateCommand({ weather, policy, compare }: SimulationRequest): string {
  const { kind, outageMs, arrivalsPerSecond, capacityPerSecond, concurrency } = weather
  const flags = [
    `--outage ${outageMs / 1_000}s --kind ${kind}`,
    `--arrivals ${arrivalsPerSecond} --capacity ${capacityPerSecond} --in-flight ${concurrency}`,
    ...(compare === undefined ? [] : ['--compare']),
  ].join(' ')
  if (policy.trim() === '') return `redrive simulate ${flags}`
  return `echo ${quoted(policy)} > policy.json && redrive simulate policy.json ${flags}`
}

/** Returns the highest number of calls in one second. */
const highest = ({ load }: SimulationResult, fromS: number): string =>
  countText(highestOf(load.slice(fromS)))

/** Returns the result as a sentence: the load of this policy, and of the other one. */
export function simulationSentence(
  { weather }: SimulationRequest,
  {
    own,
    other,
    calmMs,
  }: { own: SimulationResult; other: SimulationResult | undefined; calmMs: number },
): string {
  const fromS = calmMs / 1_000
  const ends = (one: SimulationResult) =>
    one.drainRatio === undefined ? 'does not drain' : 'drains'
  const first = `From the start of an outage of ${spanText(weather.outageMs)}, this policy calls the dependency at most ${highest(own, fromS)} times per second and ${ends(own)}.`
  if (other === undefined) return first
  return `${first} The textbook policy reaches ${highest(other, fromS)} and ${ends(other)}.`
}

export interface ResultRow {
  readonly name: string
  readonly goal: string
  readonly value: (one: SimulationResult) => string
  readonly isMet: (one: SimulationResult) => boolean
}

const times = (text: string) => `${text}${NBSP}×`

/** 12 digits: fewer than the rounding errors of a sum. */
const DIGITS_MAX = 12

/** Returns a value. One above the goal has as many digits as show that it is above. */
function comparedText(value: number, goal: number, digits: number): string {
  const text = value.toFixed(digits)
  const isMisleading = value > goal && Number(text) <= goal && digits < DIGITS_MAX
  return isMisleading ? comparedText(value, goal, digits + 1) : text
}

/** Returns the rows of the table of results. */
export const resultRows = (goals: Goals): readonly ResultRow[] => [
  {
    name: 'Attempts per message',
    goal: `at most ${goals.attemptsPerMessage}`,
    value: ({ attemptsPerMessage }) =>
      comparedText(attemptsPerMessage, goals.attemptsPerMessage, 2),
    isMet: ({ attemptsPerMessage }) => attemptsPerMessage <= goals.attemptsPerMessage,
  },
  {
    name: 'Good messages dead-lettered',
    goal: percentText(goals.falseDeadLetters),
    value: ({ falseDeadLetters }) => shareOf(falseDeadLetters),
    isMet: ({ falseDeadLetters }) => falseDeadLetters <= goals.falseDeadLetters,
  },
  {
    name: 'Time to drain',
    goal: `at most ${times(goals.drain.toFixed(1))} minimum`,
    value: ({ drainRatio }) =>
      drainRatio === undefined
        ? 'does not drain'
        : `${times(comparedText(drainRatio, goals.drain, 2))} minimum`,
    isMet: ({ drainRatio }) => drainRatio !== undefined && drainRatio <= goals.drain,
  },
  {
    name: 'Peak load',
    goal: `at most ${times(goals.peak.toFixed(0))} arrivals`,
    value: ({ peak }) => `${times(comparedText(peak, goals.peak, 1))} arrivals`,
    isMet: ({ peak }) => peak <= goals.peak,
  },
]

/** A small share is never 0, because the goal is 0. */
const shareOf = (share: number): string =>
  share > 0 && share < 0.0005 ? `<${NBSP}0.1${NBSP}%` : percentText(share)

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
] as const

/** Returns an exact duration in the unit of options: 60 s, 5 min, 14 d. */
export function spanText(ms: number): string {
  const found = UNITS.find(([, one]) => ms > one && ms % one === 0)
  const [unit, size] = found ?? (ms % 1_000 === 0 ? ['s', 1_000] : ['ms', 1])
  return `${ms / size}${NBSP}${unit}`
}

/** A little more than the slowest policy that drains. */
const SHOWN_SHARE = 1.15
/** Seconds to show after the outage when no policy drains. */
const AFTER_S = 120

/** Returns the seconds that the chart shows: a little more than the slowest policy that drains. */
export function shownSeconds(
  { weather }: SimulationRequest,
  results: readonly SimulationResult[],
  calmMs: number,
): number {
  const drained = results.filter(({ drainRatio }) => drainRatio !== undefined)
  const longest = Math.max(0, ...drained.map(({ load }) => load.length))
  const untilS = (calmMs + weather.outageMs) / 1_000
  return Math.max(untilS + 30, longest === 0 ? untilS + AFTER_S : Math.ceil(longest * SHOWN_SHARE))
}
