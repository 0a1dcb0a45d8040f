// Pages, groups and counters, compared with the bare statement for the same rows, and with 1 % of
// the rows.
import { seededRandom } from '@redrive/testing'
import type { Overrides } from '../comparison.ts'
import { type Gauge, type GaugeVerdict, judgeFigure, type Limit } from '../gauge.ts'
import { aligned } from '../report.ts'
import { bootstrap, type Estimate, quantile } from '../stats.ts'
import { filled, type Filled } from './filled.ts'
import { dropOldest } from './dropping.ts'
import { type QueryCase, FILTERS, PAGES, type Question, WIDE } from './questions.ts'

const COUNT = 5_000_000
const QUICK_COUNT = 50_000
const FEW = 50_000
const QUICK_FEW = 5_000
const ASKED = 1_000
const QUICK_ASKED = 150
/** 40: two of them are slower than the 95th percentile. */
const WIDE_ASKED = 40
/** Five times fewer, because they take longer. A hundredth of them is still two. */
const FILTERS_FEWER = 5
/** Disturbances come in bursts, so neighbouring samples are resampled together. */
const BLOCKS = 25
const RESAMPLES = 300
/** A search ends after 150 ms, with the rows found so far. The rest is for the last step and the transaction. */
const SEARCH_MS = 300

interface Times {
  readonly catalog: number[]
  readonly bare: number[]
  readonly few: number[]
}

export async function answering({ quick, seed = 1 }: Overrides): Promise<Gauge> {
  const few = await filled(quick ? QUICK_FEW : FEW)
  try {
    const many = await filled(quick ? QUICK_COUNT : COUNT)
    try {
      return await gauged(many, few, quick ? QUICK_ASKED : ASKED, seed)
    } finally {
      await many.close()
    }
  } finally {
    await few.close()
  }
}

async function gauged(many: Filled, few: Filled, perQuery: number, seed: number): Promise<Gauge> {
  const pages = await queriesInTurn(PAGES, many, few, perQuery, seed)
  const filters = await queriesInTurn(FILTERS, many, few, Math.ceil(perQuery / FILTERS_FEWER), seed)
  const wide = await longest(many)
  const drop = await dropOldest(many)
  const all = [...pages, ...filters]
  const table = aligned([
    ['ms', 'p50', 'p95', 'p99', 'bare p50', 'bare p95', 'x bare', `p95 of ${few.count}`, 'x few'],
    ...all.map(([name, times]) => row(name, times)),
  ])
  return {
    name: 'catalog.answers',
    summary: `${many.count} dead letters compared with ${few.count}, ${perQuery} of each query in turn`,
    details: [
      `filled in ${many.seconds.toFixed(0)} s, ${many.megabytes.toFixed(0)} MB`,
      table,
      ...wide.map(([name, ms]) => `${name}: p95 ${ms.toFixed(0)} ms`),
      `a day of ${drop.rows} dropped in ${drop.ms.toFixed(0)} ms`,
    ].join('\n'),
    verdicts: [
      ...pages.flatMap(([name, times]) => [
        judgedRatio(
          { name: `${wordOf(name)}/bare.p95`, unit: 'x', below: 2 },
          times.catalog,
          times.bare,
        ),
        judgedRatio(
          { name: `${wordOf(name)}/few.p95`, unit: 'x', below: 1.2 },
          times.catalog,
          times.few,
        ),
      ]),
      ...filters.map(([name, { catalog }]) =>
        judgeFigure(
          { name: `${wordOf(name)}.p99`, unit: 'ms', below: 200 },
          estimate([catalog], ([values = []]) => quantile(values, 0.99)),
        ),
      ),
      judgeFigure(
        { name: 'search.p95', unit: 'ms', below: SEARCH_MS },
        exactly(Math.max(...wide.map(([, ms]) => ms))),
      ),
      judgeFigure({ name: 'drop-a-day', unit: 'ms', below: 1_000 }, exactly(drop.ms)),
    ],
  }
}

/** Returns one word for the verdict line. */
const wordOf = (name: string) => name.replaceAll(/[ ,]+/g, '-')

const exactly = (value: number): Estimate => ({ median: value, low: value, high: value })

// ---- Measuring ----------------------------------------------------------------------------------

async function timed(act: () => Promise<unknown>): Promise<number> {
  const beganAt = performance.now()
  await act()
  return performance.now() - beganAt
}

/**
 * Runs the queries in turn, each on both catalogs in alternating order. So a disturbance affects
 * all of them.
 */
async function queriesInTurn(
  questions: readonly Question[],
  many: Filled,
  few: Filled,
  perQuery: number,
  seed: number,
): Promise<readonly (readonly [string, Times])[]> {
  const random = seededRandom(seed)
  const all = questions.map((question) => ({
    question,
    times: { catalog: [], bare: [], few: [] } as Times,
  }))
  const warmUp = Math.ceil(perQuery / 10)
  for (let turn = -warmUp; turn < perQuery; turn++) {
    for (const { question, times } of all) {
      const inMany = question.pick(many, random)
      const inFew = question.pick(few, random)
      await inMany.find?.()
      await inFew.find?.()
      const ms = {
        catalog: await timed(() => expectRows(inMany.catalog, question.name)),
        bare: await timed(() => expectRows(inMany.bare, question.name)),
        few: await timed(inFew.catalog),
      }
      if (turn < 0) continue
      times.catalog.push(ms.catalog)
      times.bare.push(ms.bare)
      times.few.push(ms.few)
    }
  }
  return all.map(({ question, times }) => [question.name, times] as const)
}

async function expectRows(ask: QueryCase['bare'], name: string): Promise<void> {
  if ((await ask()) === 0) throw new Error(`The query "${name}" found no rows.`)
}

/** Measures searches that match almost nothing: the 95th percentile of their duration. */
async function longest(many: Filled): Promise<readonly (readonly [string, number])[]> {
  const random = seededRandom(1)
  const found: (readonly [string, number])[] = []
  for (const { name, ask } of WIDE) {
    const times: number[] = []
    for (let turn = 0; turn < WIDE_ASKED; turn++) {
      times.push(await timed(() => ask(many, random)))
    }
    found.push([name, quantile(times, 0.95)])
  }
  return found
}

// ---- Judging ------------------------------------------------------------------------------------

/** Groups the series into blocks; each block covers the same time in all of them. */
function estimate(
  series: readonly (readonly number[])[],
  statistic: (series: readonly (readonly number[])[]) => number,
): Estimate {
  const size = Math.ceil((series[0]?.length ?? 0) / BLOCKS)
  const blocks = Array.from({ length: BLOCKS }, (_, block) =>
    series.map((values) => values.slice(block * size, (block + 1) * size)),
  )
  const joined = (some: readonly (readonly (readonly number[])[])[]) =>
    statistic(series.map((_, at) => some.flatMap((block) => block[at] ?? [])))
  return bootstrap(blocks, joined, seededRandom(1), RESAMPLES)
}

const p95Ratio = ([left = [], right = []]: readonly (readonly number[])[]) =>
  quantile(left, 0.95) / quantile(right, 0.95)

const judgedRatio = (
  limit: Limit,
  left: readonly number[],
  right: readonly number[],
): GaugeVerdict => judgeFigure(limit, estimate([left, right], p95Ratio))

function row(name: string, { catalog, bare, few }: Times): string[] {
  const ms = (values: readonly number[], portion: number) => quantile(values, portion).toFixed(2)
  return [
    name,
    ms(catalog, 0.5),
    ms(catalog, 0.95),
    ms(catalog, 0.99),
    ms(bare, 0.5),
    ms(bare, 0.95),
    p95Ratio([catalog, bare]).toFixed(2),
    ms(few, 0.95),
    p95Ratio([catalog, few]).toFixed(2),
  ]
}
