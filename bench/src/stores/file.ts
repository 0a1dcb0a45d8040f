// Measures how long a file store with many dead letters takes to find one, to list a page and to
// save one more.
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FileStore, fileStore } from '@redrive/file-store'
import type { StoredDeadLetter } from '@redrive/runtime'
import { type SeededRandom, seededRandom } from '@redrive/testing'
import type { Overrides } from '../comparison.ts'
import { type Gauge, type GaugeVerdict, judgeFigure, type Limit } from '../gauge.ts'
import { aligned } from '../report.ts'
import { bootstrap, type Estimate, quantile } from '../stats.ts'
import { BareFile } from './bare.ts'
import { numbered, SINKS, START } from './samples.ts'

const COUNT = 1_000_000
const QUICK_COUNT = 50_000
/** Concurrent saves while the store is filled, as from an emitter in an outage. */
const FILLING_AT_ONCE = 200
const READS = 3_000
const PAGE = 50
const SAVES_PER_SECOND = 1_000
const SAVING_SECONDS = 20
const QUICK_SAVING_SECONDS = 5
/** Disturbances come in bursts, so neighbouring samples are resampled together. */
const BLOCKS = 50
const RESAMPLES = 300
const MEGABYTE = 2 ** 20

const LIMITS = {
  get: { name: 'get.p99', unit: 'ms', below: 20 },
  list: { name: 'list.p99', unit: 'ms', below: 20 },
  save: { name: 'save.p99', unit: 'ms', below: 5 },
  // 100 bytes for each: rows, their table, and a third of the rows in reserve.
  memory: { name: 'memory', unit: 'MB', below: 100 },
} satisfies Record<string, Limit>

const BARE = 'bare append'
/** Half of the limit: if the disk alone takes longer, the store cannot be judged. */
const NOISE_MS = 2.5

type Timed = Readonly<Record<string, readonly number[]>>

interface Facts {
  readonly count: number
  readonly fillPerSecond: number
  readonly openMs: number
  readonly memoryMb: number
  readonly rssMb: number
  readonly diskMb: number
}

export async function fileStoreAt({ quick, seed = 1 }: Overrides): Promise<Gauge> {
  const directory = await mkdtemp(join(tmpdir(), 'redrive-bench-'))
  const count = quick ? QUICK_COUNT : COUNT
  try {
    const filling = await fill(directory, count)
    const before = memoryMb()
    const store = fileStore({ directory })
    const startedAt = performance.now()
    const { bytes } = await store.stats()
    const openMs = performance.now() - startedAt
    const facts = {
      count,
      fillPerSecond: filling.perSecond,
      openMs,
      memoryMb: memoryMb() - before,
      rssMb: process.memoryUsage.rss() / MEGABYTE,
      diskMb: bytes / MEGABYTE,
    }
    const reading = await read(store, count, seededRandom(seed))
    const bare = new BareFile(await open(join(directory, 'bare'), 'w'))
    const seconds = quick ? QUICK_SAVING_SECONDS : SAVING_SECONDS
    const saving = await savePaced(store, bare, count, seconds)
    await bare.close()
    await store.close()
    return gaugeOf({ ...reading, ...saving, 'save, filling': filling.ms }, facts)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

// ---- Measuring ----------------------------------------------------------------------------------

async function timed(act: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await act()
  return performance.now() - startedAt
}

async function fill(
  directory: string,
  count: number,
): Promise<{ readonly perSecond: number; readonly ms: readonly number[] }> {
  const store = fileStore({ directory })
  const ms: number[] = []
  let number = 0
  const work = async () => {
    while (number < count) {
      const deadLetter = numbered(number++)
      ms.push(await timed(() => store.save(deadLetter)))
    }
  }
  const totalMs = await timed(() => Promise.all(Array.from({ length: FILLING_AT_ONCE }, work)))
  await store.close()
  return { perSecond: count / (totalMs / 1_000), ms }
}

/** Returns the memory of the process after a collection, buffers included. */
function memoryMb(): number {
  if (globalThis.gc === undefined) throw new Error('Memory needs node --expose-gc')
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return (heapUsed + arrayBuffers) / MEGABYTE
}

async function read(store: FileStore, count: number, random: SeededRandom): Promise<Timed> {
  const times: Record<string, number[]> = {
    get: [],
    list: [],
    'list, by sink': [],
    'list, rare job': [],
  }
  const page = (filter: Parameters<FileStore['list']>[0]['filter'] = {}) => {
    const savedAfter = START + random.int(count - PAGE * SINKS.length) - 1
    return store.list({ filter: { ...filter, savedAfter }, limit: PAGE })
  }
  for (let turn = 0; turn < READS; turn++) {
    const id = `event-${random.int(count)}`
    times['get']?.push(await timed(async () => expectOne(await store.get(id), id)))
    times['list']?.push(await timed(async () => expectPage(await page())))
    times['list, by sink']?.push(await timed(async () => expectPage(await page({ sink: 'otlp' }))))
    if (turn % 10 === 0) {
      times['list, rare job']?.push(await timed(() => page({ job: 'rare' })))
    }
  }
  return times
}

function expectOne(found: StoredDeadLetter | undefined, id: string): void {
  if (found?.id !== id) throw new Error(`The store did not find ${id}`)
}

function expectPage({ deadLetters }: { readonly deadLetters: readonly unknown[] }): void {
  if (deadLetters.length !== PAGE)
    throw new Error(`The page has ${deadLetters.length} entries instead of ${PAGE}`)
}

/**
 * Creates an open load: due events are saved, however long the last one takes. Every other second
 * uses bare appends that share an fdatasync, so that both use the same disk.
 */
async function savePaced(
  store: FileStore,
  bare: BareFile,
  from: number,
  seconds: number,
): Promise<{ readonly save: readonly number[]; readonly [BARE]: readonly number[] }> {
  const save: Promise<number>[] = []
  const bareSaves: Promise<number>[] = []
  for (let second = 0; second < seconds; second++) {
    await paced(save, (number) => {
      const deadLetter = numbered(from + number)
      return timed(() => store.save(deadLetter))
    })
    await paced(bareSaves, () => timed(() => bare.append()))
  }
  return { save: await Promise.all(save), [BARE]: await Promise.all(bareSaves) }
}

/** Runs one second of the load. */
async function paced(
  begun: Promise<number>[],
  begin: (number: number) => Promise<number>,
): Promise<void> {
  const before = begun.length
  const startedAt = performance.now()
  for (let elapsed = 0; elapsed < 1; elapsed = (performance.now() - startedAt) / 1_000) {
    while (begun.length - before < elapsed * SAVES_PER_SECOND) begun.push(begin(begun.length))
    await sleep(1)
  }
}

// ---- Judging ------------------------------------------------------------------------------------

function gaugeOf(timings: Timed, facts: Facts): Gauge {
  const p99s = Object.fromEntries(
    Object.entries(timings).map(([name, values]) => [name, p99Of(values)]),
  )
  const { count, fillPerSecond, openMs, memoryMb: memory, rssMb, diskMb } = facts
  const judged = (name: 'get' | 'list' | 'save') =>
    judgeFigure(LIMITS[name], p99s[name] as Estimate)
  const disk = p99s[BARE]?.median ?? 0
  const why = `the disk alone takes ${disk.toFixed(1)} ms`
  const save: GaugeVerdict =
    disk > NOISE_MS ? { kind: 'noisy', limit: LIMITS.save, why } : judged('save')
  const exact = { median: memory, low: memory, high: memory }
  const lines = [
    `${count} dead letters, ${diskMb.toFixed(0)} MB; filled at ${fillPerSecond.toFixed(0)} a second`,
    `opened in ${openMs.toFixed(0)} ms; ${memory.toFixed(1)} MB for the content, resident ${rssMb.toFixed(0)} MB after filling`,
  ]
  const table = aligned([
    ['ms', 'count', 'p50', 'p90', 'p99', 'worst', '95 % of p99'],
    ...Object.entries(timings).map(([name, values]) => row(name, values, p99s[name] as Estimate)),
  ])
  return {
    name: 'stores.file',
    summary: `fsync batch, pages of ${PAGE}, ${SAVES_PER_SECOND} saves a second`,
    details: [...lines, table].join('\n'),
    verdicts: [judged('get'), judged('list'), save, judgeFigure(LIMITS.memory, exact)],
  }
}

function p99Of(values: readonly number[]): Estimate {
  const size = Math.ceil(values.length / BLOCKS)
  const blocks = Array.from({ length: Math.ceil(values.length / size) }, (_, block) =>
    values.slice(block * size, (block + 1) * size),
  )
  const statistic = (some: readonly (readonly number[])[]) => quantile(some.flat(), 0.99)
  return bootstrap(blocks, statistic, seededRandom(1), values.length > 100_000 ? 10 : RESAMPLES)
}

function row(name: string, values: readonly number[], { low, high }: Estimate): string[] {
  return [
    name,
    String(values.length),
    ...[0.5, 0.9, 0.99, 1].map((portion) => quantile(values, portion).toFixed(2)),
    `${low.toFixed(2)} to ${high.toFixed(2)}`,
  ]
}
