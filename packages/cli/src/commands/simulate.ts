import { readFile, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parseDuration, type PolicyOptions, readPolicyOptions } from '@redrive/core'
import {
  CALM_MS,
  drainRatio,
  drawing,
  type OutageKind,
  pageOf,
  type Played,
  plotText,
  shortcomings,
  storm,
  type StormOptions,
  TEXTBOOK,
} from '@redrive/storm'
import { parse } from 'yaml'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'

export interface SimulateOptions extends CommonOptions {
  /** File with the policy, YAML or JSON. Default: the policy that is in force without one. */
  readonly policy?: string
  /** How long the dependency is out. '1s' to '6h', default '5m'. */
  readonly outage?: string
  /** `refuse`: it answers nothing. `brown-out`: it serves a fifth. Default `refuse`. */
  readonly kind?: OutageKind
  /** Messages that arrive each second. 1 to 1,000, default 100. */
  readonly arrivals?: number
  /** What the dependency serves each second when it is well. More than arrives, default half more. */
  readonly capacity?: number
  /** Attempts in flight in the whole fleet. 1 to 2,000, default 100. */
  readonly inFlight?: number
  readonly seed?: number
  /** Beside the policies of textbooks. */
  readonly compare?: boolean
  /** Files to write. */
  readonly svg?: string
  readonly html?: string
}

/** Plays a policy against an outage in virtual time, so that it meets one before production does. */
export async function simulate(io: Io, options: SimulateOptions): Promise<ExitCode> {
  const weather = weatherOf(options)
  const own = {
    name: options.policy ?? 'default',
    title: options.policy === undefined ? 'the default policy' : 'your policy',
    policy: await policyOf(io, options.policy),
  }
  const others = options.compare === true ? TEXTBOOK.filter(({ name }) => name !== 'Redrive') : []
  const played: Played[] = []
  for (const policy of [own, ...others]) {
    io.stderr.write(`Playing ${policy.name}: ${policy.title} …\n`)
    played.push({ policy, result: await storm({ ...weather, policy: policy.policy }) })
  }
  const title = `${weather.outageMs / 1_000} s of ${weather.kind} with ${weather.concurrency} in flight`
  if (options.svg !== undefined) await write(io, options.svg, drawing(title, weather, played))
  if (options.html !== undefined) await write(io, options.html, pageOf(title, weather, played))
  io.stdout.write(textOf(io, options, { weather, played }))
  const isGood = played[0] !== undefined && shortcomings(played[0].result).length === 0
  return isGood ? EXIT.ok : EXIT.failure
}

type Weather = Omit<StormOptions, 'policy'>

function weatherOf(options: SimulateOptions): Weather {
  const { outage = '5m', kind = 'refuse', arrivals = 100, inFlight = 100, seed = 1 } = options
  const capacity = options.capacity ?? arrivals * 1.5
  const outageMs = parseDuration(outage) ?? Number.NaN
  const problems: string[] = []
  const expect = (isFit: boolean, sentence: string) => {
    if (!isFit) problems.push(sentence)
  }
  expect(outageMs >= 1_000 && outageMs <= 21_600_000, "--outage: expected '1s' to '6h'")
  expect(kind === 'refuse' || kind === 'brown-out', '--kind: expected refuse or brown-out')
  expect(arrivals >= 1 && arrivals <= 1_000, '--arrivals: expected 1 to 1000 for each second')
  expect(capacity > arrivals, '--capacity: expected more than arrives, or nothing ever drains')
  expect(inFlight >= 1 && inFlight <= 2_000, '--in-flight: expected 1 to 2000')
  expect(Number.isSafeInteger(seed), '--seed: expected a whole number')
  if (problems.length > 0) throw new CommandError(EXIT.usage, problems.join('\n'))
  return {
    kind,
    outageMs,
    concurrency: inFlight,
    arrivalsPerSecond: arrivals,
    capacityPerSecond: capacity,
    seed,
  }
}

/** The words of `consume()`; YAML is JSON as well. */
async function policyOf(io: Io, path: string | undefined): Promise<PolicyOptions> {
  if (path === undefined) return {}
  try {
    const text = await readFile(resolve(io.cwd, path), 'utf8')
    return readPolicyOptions(parse(text), { env: io.env })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new CommandError(EXIT.usage, `The policy ${path} cannot be read: ${why}`, {
      cause: error,
    })
  }
}

async function write(io: Io, path: string, text: string): Promise<void> {
  await writeFile(resolve(io.cwd, path), text)
  io.stderr.write(`Wrote ${path}\n`)
}

interface Outcome {
  readonly weather: Weather
  readonly played: readonly Played[]
}

function textOf(io: Io, { json, jsonl }: SimulateOptions, { weather, played }: Outcome): string {
  const rows = played.map(({ policy, result }) => ({
    policy: policy.name,
    messages: result.messages,
    attemptsPerMessage: result.attemptsPerMessage,
    falseDeadLetters: result.falseDeadLetters,
    drainRatio: drainRatio(result) ?? null,
    peak: result.peak,
    shortcomings: shortcomings(result),
  }))
  if (jsonl === true) return rows.map((row) => `${JSON.stringify(row)}\n`).join('')
  if (json === true) return `${JSON.stringify({ weather, policies: rows }, undefined, 2)}\n`
  return played.map((one) => sectionOf(io, weather, one)).join('\n')
}

const PLOT_ROWS = 8
/** Labels of the plot and their line. */
const MARGIN = 17
const PLOT_COLUMNS_MAX = 100

function sectionOf(io: Io, weather: Weather, { policy, result }: Played): string {
  const outageFromS = CALM_MS / 1_000
  const short = shortcomings(result)
  const ratio = drainRatio(result)
  const picture = plotText({
    load: result.load,
    columns: Math.min(PLOT_COLUMNS_MAX, io.stdout.columns - MARGIN),
    rows: PLOT_ROWS,
    arrivalsPerSecond: weather.arrivalsPerSecond,
    capacityPerSecond: weather.capacityPerSecond,
    outageFromS,
    outageUntilS: outageFromS + weather.outageMs / 1_000,
  })
  return `${policy.name}: ${policy.title}
${picture}
  attempts per message  ${result.attemptsPerMessage.toFixed(3)}
  good ones given up    ${(result.falseDeadLetters * 100).toFixed(1)} % of ${result.messages.toLocaleString('en')}
  drained after         ${ratio === undefined ? 'it does not' : `${((result.drainMs ?? 0) / 1_000).toFixed(0)} s, ${ratio.toFixed(2)} x the shortest possible`}
  peak                  ${result.peak.toFixed(2)} x the arrivals
  ${short.length === 0 ? 'Keeps to all goals.' : `Short: ${short.join(', ')}.`}
`
}
