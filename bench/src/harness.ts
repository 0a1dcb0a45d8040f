import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { type SeededRandom, seededRandom } from '@redrive/testing'

export interface Candidate {
  readonly name: string
  /** Handles `count` messages; only this is timed. */
  run(count: number): Promise<void>
  /** Untimed, before each sample: fill the queue, for example. */
  prepare?(count: number): Promise<void>
  /** Untimed, after each sample: throw when the work was not really done. */
  verify?(count: number): Promise<void> | void
  /** Once, after the last sample. */
  close?(): Promise<void> | void
}

export interface MeasureOptions {
  /** Interleaved rounds; each gives one pair per two candidates. A 3 % gate needs 60. */
  readonly rounds: number
  /** How long one sample should take. About 50 in process, 500 to 1,000 against a broker. */
  readonly sampleMs: number
  /** Full rounds thrown away before measuring. */
  readonly warmupRounds: number
  /** Orders the candidates of each round. */
  readonly seed: number
  /** Most messages one sample may hold: bounds memory and queue length when calibrating. */
  readonly maxCount: number
  /** Fewest messages a sample holds, where a few cost something else than many. Default 1. */
  readonly minCount?: number
  /** This candidate runs a second time in each round, under another name. */
  readonly twinOf: string
}

/** Costs per message, one entry per round. */
export interface Series {
  readonly name: string
  readonly count: number
  readonly wallNs: readonly number[]
  readonly cpuNs: readonly number[]
}

export interface Measurement {
  readonly series: readonly Series[]
  readonly twin: { readonly of: string; readonly name: string }
}

export interface Clock {
  wallNs(): number
  /** User and system time of this process, its garbage collector and compiler threads included. */
  cpuNs(): number
}

const processClock: Clock = {
  wallNs: () => Number(process.hrtime.bigint()),
  cpuNs: () => {
    const { user, system } = process.cpuUsage()
    return (user + system) * 1_000
  },
}

interface Entry {
  readonly name: string
  readonly candidate: Candidate
  count: number
  readonly wallNs: number[]
  readonly cpuNs: number[]
}

interface Sample {
  readonly wallNs: number
  readonly cpuNs: number
}

/** Runs all candidates in alternation, in a new random order each round. */
export async function measure(
  candidates: readonly Candidate[],
  options: MeasureOptions,
  clock: Clock = processClock,
): Promise<Measurement> {
  const random = seededRandom(options.seed)
  const twin = { of: options.twinOf, name: `${options.twinOf} (again)` }
  const entries = withTwin(candidates, twin)
  try {
    await warmUp(entries, options, random, clock)
    for (let round = 0; round < options.rounds; round += 1) {
      await runRound(random.shuffle(entries), clock)
    }
  } finally {
    for (const candidate of candidates) await candidate.close?.()
  }
  return { series: entries.map(({ candidate: _, ...series }) => series), twin }
}

function withTwin(candidates: readonly Candidate[], twin: Measurement['twin']): Entry[] {
  const original = candidates.find(({ name }) => name === twin.of)
  if (original === undefined) throw new Error(`No candidate "${twin.of}" to measure twice`)
  const entries = candidates.map((candidate) => entry(candidate.name, candidate))
  if (new Set(entries.map(({ name }) => name)).size !== entries.length) {
    throw new Error('Two candidates have the same name')
  }
  return [...entries, entry(twin.name, original)]
}

function entry(name: string, candidate: Candidate): Entry {
  return { name, candidate, count: 1, wallNs: [], cpuNs: [] }
}

/** Calibrates, warms up, and calibrates again: compiled code is several times faster than cold. */
async function warmUp(
  entries: readonly Entry[],
  options: MeasureOptions,
  random: SeededRandom,
  clock: Clock,
): Promise<void> {
  await calibrateAll(entries, options, clock)
  for (let round = 0; round < options.warmupRounds; round += 1) {
    await runRound(random.shuffle(entries), clock)
  }
  await calibrateAll(entries, options, clock)
  for (const { wallNs, cpuNs } of entries) wallNs.length = cpuNs.length = 0
}

async function calibrateAll(
  entries: readonly Entry[],
  options: MeasureOptions,
  clock: Clock,
): Promise<void> {
  const counts = new Map<Candidate, number>()
  for (const each of entries) {
    // A twin takes its original's count: samples of another size would not be the same thing twice.
    each.count = counts.get(each.candidate) ?? (await calibrate(each, options, clock))
    counts.set(each.candidate, each.count)
  }
}

/** Finds how many messages fill a sample, growing tenfold at most so that a slow one stays short. */
async function calibrate(each: Entry, options: MeasureOptions, clock: Clock): Promise<number> {
  const { sampleMs, minCount = 1, maxCount } = options
  const targetNs = sampleMs * 1e6
  for (let count = minCount; ; ) {
    const { wallNs } = await sample(each.candidate, count, clock)
    const wanted = Math.max(minCount, Math.round((count * targetNs) / Math.max(wallNs, 1)))
    if (wallNs >= targetNs / 2 || count === maxCount) return Math.min(wanted, maxCount)
    count = Math.min(wanted, count * 10, maxCount)
  }
}

async function runRound(entries: readonly Entry[], clock: Clock): Promise<void> {
  for (const { candidate, count, wallNs, cpuNs } of entries) {
    const cost = await sample(candidate, count, clock)
    wallNs.push(cost.wallNs / count)
    cpuNs.push(cost.cpuNs / count)
  }
}

async function sample(candidate: Candidate, count: number, clock: Clock): Promise<Sample> {
  try {
    await candidate.prepare?.(count)
    // In-process samples only use microtasks; let due timers and I/O run outside the timed part.
    await nextLoopTurn()
    const cpuStart = clock.cpuNs()
    const wallStart = clock.wallNs()
    await candidate.run(count)
    const wallNs = clock.wallNs() - wallStart
    const cpuNs = clock.cpuNs() - cpuStart
    await candidate.verify?.(count)
    return { wallNs, cpuNs }
  } catch (cause) {
    throw new Error(`Candidate "${candidate.name}" failed on ${count} messages`, { cause })
  }
}
