// Measures the series of a subject and judges their growth.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '@redrive/dev-support'
import type { Overrides } from '../comparison.ts'
import type { Gauge } from '../gauge.ts'
import type { Sized } from './fit.ts'
import { plot } from './plot.ts'
import { progress } from './progress.ts'
import { resultOf } from './result.ts'
import { seriesText } from './text.ts'
import { nameOf, type Series, roundsOf, sizesOf, type Stage, type Subject } from './subject.ts'

const FOLDER = join(ROOT, '.reports', 'growth')

/** Opens a gauge for some series of one subject, which are measured together. */
export const growing =
  (subject: Subject, series: readonly Series[]) =>
  async (overrides: Overrides): Promise<Gauge> => {
    const measured = await measureAll(subject, series, overrides)
    const results = series.map((one) => resultOf(one, measured.get(one.name) ?? []))
    mkdirSync(FOLDER, { recursive: true })
    for (const result of results) {
      writeFileSync(join(FOLDER, `${nameOf(result.series)}.svg`), plot(result))
    }
    return {
      name: `growth.${subject.name}`,
      summary: `cost by ${subject.of}; plots in .reports/growth`,
      details: results.map(seriesText).join('\n\n'),
      verdicts: results.map(({ verdict }) => verdict),
      data: results.map(({ series: one, sized, fit, exponent }) => {
        return { name: nameOf(one), unit: one.unit, bound: one.bound, sized, fit, exponent }
      }),
    }
  }

async function measureAll(
  subject: Subject,
  series: readonly Series[],
  overrides: Overrides,
): Promise<ReadonlyMap<string, readonly Sized[]>> {
  const sizes = sizesOf(subject, overrides.quick)
  const rounds = roundsOf(subject, overrides.quick)
  const bySize = () => new Map<number, number[]>(sizes.map((size) => [size, []]))
  const measured = new Map(series.map(({ name }) => [name, bySize()]))
  const stage: Stage = await subject.open(overrides)
  try {
    await stage.warmUp?.()
    for (let round = 1; round <= rounds; round += 1) {
      for (const size of sizes) {
        const beganAt = performance.now()
        const costs = await stage.measure(size)
        for (const [name, sized] of measured) {
          const some = costs[name] ?? []
          if (some.length === 0) throw new Error(`"${name}" was not measured at ${size}`)
          sized.get(size)?.push(...some)
        }
        const seconds = ((performance.now() - beganAt) / 1_000).toFixed(1)
        progress(
          `round ${round} of ${rounds}, ${size.toLocaleString('en')} ${subject.of}: ${seconds} s`,
        )
      }
    }
  } finally {
    await stage.close()
  }
  const sizedOf = (costs: ReadonlyMap<number, readonly number[]>) =>
    [...costs].map(([size, some]) => ({ size, costs: some }))
  return new Map([...measured].map(([name, costs]) => [name, sizedOf(costs)]))
}
