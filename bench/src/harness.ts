import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { type SeededRandom, seededRandom } from '@redrive/testing'

export interface Candidate {
  readonly name: string
  /** Handles `count` messages; only this is timed. */
  run(count: number): Promise<void>
  /** Runs untimed before each sample, for example to fill the queue. */
  prepare?(count: number): Promise<void>
  /** Runs untimed after each sample; throws when the work was not really done. */
  verify?(count: number): Promise<void> | void
  /** Runs once after the last sample. */
  close?(): Promise<void> | void
}

export interface MeasureOptions {
  /** Interleaved rounds; each has one pair for every two candidates. A 3 % gate needs 60. */
  readonly rounds: number
  /** Duration of one sample: about 50 ms in process, 500 to 1,000 ms with a broker. */
  readonly sampleMs: number
  /** Complete rounds that are discarded before measuring. */
  readonly warmupRounds: number
  /** Seed for the order of the candidates in each round. */
  readonly seed: number
  /** Maximum number of messages in one sample; limits memory and queue length during calibration. */
  readonly maxCount: number
  /** Minimum number of messages in a sample, for costs that depend on the number. Default 1. */
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
  if (original === undefined) throw new Error(`No candidate "${twin.of}" exists to measure twice`)
  const entries = candidates.map((candidate) => entry(candidate.name, candidate))
  if (new Set(entries.map(({ name }) => name)).size !== entries.length) {
    throw new Error('Two candidates have the same name')
  }
  return [...entries, entry(twin.name, original)]
}

function entry(name: string, candidate: Candidate): Entry {
  return { name, candidate, count: 1, wallNs: [], cpuNs: [] }
}

/**
 * Calibrates, warms up, and calibrates again, because compiled code is several times faster than
 * cold code.
 */
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
    // A twin uses the count of its original. Samples of another size would not be comparable.
    each.count = counts.get(each.candidate) ?? (await calibrate(each, options, clock))
    counts.set(each.candidate, each.count)
  }
}

/**
 * Finds the number of messages that fill a sample. It grows at most tenfold per step, so that a
 * slow candidate stays short.
 */
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
    // In-process samples only use microtasks, so due timers and I/O run here, outside the timed
    // part.
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
