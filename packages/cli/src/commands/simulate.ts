import { readFile, writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { parseDuration, type PolicyOptions, readPolicyOptions } from '@redrive/core'
import {
  drawing,
  type OutageKind,
  pageOf,
  type PolicyResult,
  plotText,
  shortcomings,
  simulateOutage,
  type StormOptions,
  TEXTBOOK,
} from '@redrive/storm'
import { CALM_MS, drainRatio } from '@redrive/storm/internal'
import { parse } from 'yaml'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'

export interface SimulateOptions extends CommonOptions {
  /** File with the policy, YAML or JSON. Default: the default policy. */
  readonly policy?: string
  /** Length of the outage. '1s' to '6h', default '5m'. */
  readonly outage?: string
  /** `refuse`: the dependency serves nothing. `brown-out`: it serves a fifth. Default `refuse`. */
  readonly kind?: OutageKind
  /** Messages that arrive per second. 1 to 1,000, default 100. */
  readonly arrivals?: number
  /** Messages that a healthy dependency serves per second. More than `arrivals`, default 1.5 times as many. */
  readonly capacity?: number
  /** Attempts in flight in the whole fleet. 1 to 2,000, default 100. */
  readonly inFlight?: number
  readonly seed?: number
  /** Simulates common textbook policies too. */
  readonly compare?: boolean
  /** Files to write. */
  readonly svg?: string
  readonly html?: string
}

/** Simulates a policy during an outage in virtual time, to test it before production. */
export async function simulate(io: Io, options: SimulateOptions): Promise<ExitCode> {
  const outage = outageOf(options)
  const own = {
    name: options.policy ?? 'default',
    title: options.policy === undefined ? 'the default policy' : 'your policy',
    policy: await policyOf(io, options.policy),
  }
  const others = options.compare === true ? TEXTBOOK.filter(({ name }) => name !== 'Redrive') : []
  const results: PolicyResult[] = []
  for (const policy of [own, ...others]) {
    io.stderr.write(`Simulating ${policy.name}: ${policy.title} …\n`)
    results.push({ policy, result: await simulateOutage({ ...outage, policy: policy.policy }) })
  }
  const title = `${outage.outageMs / 1_000} s of ${outage.kind} with ${outage.concurrency} in flight`
  if (options.svg !== undefined) await write(io, options.svg, drawing(title, outage, results))
  if (options.html !== undefined) await write(io, options.html, pageOf(title, outage, results))
  io.stdout.write(textOf(io, options, { outage, results }))
  const isGood = results[0] !== undefined && shortcomings(results[0].result).length === 0
  return isGood ? EXIT.ok : EXIT.failure
}

type OutageOptions = Omit<StormOptions, 'policy'>

function outageOf(options: SimulateOptions): OutageOptions {
  const { outage = '5m', kind = 'refuse', arrivals = 100, inFlight = 100, seed = 1 } = options
  const capacity = options.capacity ?? arrivals * 1.5
  const outageMs = parseDuration(outage) ?? Number.NaN
  const problems: string[] = []
  const expect = (isValid: boolean, sentence: string) => {
    if (!isValid) problems.push(sentence)
  }
  expect(
    outageMs >= 1_000 && outageMs <= 21_600_000,
    `--outage: expected 1s to 6h, got "${outage}"`,
  )
  expect(kind === 'refuse' || kind === 'brown-out', '--kind: expected refuse or brown-out')
  expect(arrivals >= 1 && arrivals <= 1_000, '--arrivals: expected 1 to 1000 per second')
  expect(
    capacity > arrivals,
    '--capacity: expected more than --arrivals, or the queue never drains',
  )
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

/** Reads the options of `consume()` from YAML or JSON. */
async function policyOf(io: Io, path: string | undefined): Promise<PolicyOptions> {
  if (path === undefined) return {}
  try {
    const text = await readFile(resolve(io.cwd, path), 'utf8')
    return readPolicyOptions(parse(text), { env: io.env })
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new CommandError(EXIT.usage, `Cannot read the policy ${path}: ${why}`, {
      cause: error,
    })
  }
}

async function write(io: Io, path: string, text: string): Promise<void> {
  await writeFile(resolve(io.cwd, path), text)
  io.stderr.write(`Wrote ${path}\n`)
}

interface Simulation {
  readonly outage: OutageOptions
  readonly results: readonly PolicyResult[]
}

function textOf(io: Io, { json, jsonl }: SimulateOptions, simulation: Simulation): string {
  const { outage, results } = simulation
  const rows = results.map(({ policy, result }) => ({
    policy: policy.name,
    messages: result.messages,
    attemptsPerMessage: result.attemptsPerMessage,
    falseDeadLetters: result.falseDeadLetters,
    drainRatio: drainRatio(result) ?? null,
    peak: result.peak,
    shortcomings: shortcomings(result),
  }))
  if (jsonl === true) return rows.map((row) => `${JSON.stringify(row)}\n`).join('')
  if (json === true) return `${JSON.stringify({ weather: outage, policies: rows }, undefined, 2)}\n`
  return results.map((one) => sectionOf(io, outage, one)).join('\n')
}

const PLOT_ROWS = 8
/** Columns for the labels of the plot and its vertical line. */
const MARGIN = 17
const PLOT_COLUMNS_MAX = 100

function sectionOf(io: Io, outage: OutageOptions, { policy, result }: PolicyResult): string {
  const outageFromS = CALM_MS / 1_000
  const short = shortcomings(result)
  const ratio = drainRatio(result)
  const picture = plotText({
    load: result.load,
    columns: Math.min(PLOT_COLUMNS_MAX, io.stdout.columns - MARGIN),
    rows: PLOT_ROWS,
    arrivalsPerSecond: outage.arrivalsPerSecond,
    capacityPerSecond: outage.capacityPerSecond,
    outageFromS,
    outageUntilS: outageFromS + outage.outageMs / 1_000,
  })
  return `${policy.name}: ${policy.title}
${picture}
  attempts per message  ${result.attemptsPerMessage.toFixed(3)}
  false dead letters    ${(result.falseDeadLetters * 100).toFixed(1)} % of ${result.messages.toLocaleString('en')}
  drained after         ${ratio === undefined ? 'never' : `${((result.drainMs ?? 0) / 1_000).toFixed(0)} s, ${ratio.toFixed(2)} x the shortest possible`}
  peak                  ${result.peak.toFixed(2)} x the arrivals
  ${short.length === 0 ? 'Meets all goals.' : `Misses goals: ${short.join(', ')}.`}
`
}
