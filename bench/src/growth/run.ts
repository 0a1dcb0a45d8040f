// Measures the series of a subject and judges their growth.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '@redrive/dev-support'
import type { Overrides } from '../comparison.ts'
import type { Gauge } from '../gauge.ts'
import type { Sized } from './fit.ts'
import { plot } from './plot.ts'
import { progress } from './progress.ts'
import { type Result, resultOf, unmeasured } from './result.ts'
import { seriesText } from './text.ts'
import { nameOf, type Series, roundsOf, sizesOf, type Stage, type Subject } from './subject.ts'

const FOLDER = join(ROOT, '.reports', 'growth')

/** Opens a gauge for some series of one subject, which are measured together. */
export const growing =
  (subject: Subject, series: readonly Series[]) =>
  async (overrides: Overrides): Promise<Gauge> => {
    const { measured, failure } = await measureAll(subject, series, overrides)
    const results = series.flatMap((one) => resultsOf(one, measured.get(one.name) ?? [], failure))
    mkdirSync(FOLDER, { recursive: true })
    for (const result of results) {
      writeFileSync(join(FOLDER, `${nameOf(result.series)}.svg`), plot(result))
    }
    return {
      name: `growth.${subject.name}`,
      summary: `cost by ${subject.of}; plots in .reports/growth`,
      details: results.map(seriesText).join('\n\n'),
      verdicts:
        failure === undefined
          ? results.map(({ verdict }) => verdict)
          : series.map((one) => unmeasured(one, failure)),
      data: results.map(({ series: one, sized, fit, exponent }) => {
        return { name: nameOf(one), unit: one.unit, bound: one.bound, sized, fit, exponent }
      }),
    }
  }

/** Returns no result if an error left fewer than two sizes. */
function resultsOf(
  series: Series,
  sized: readonly Sized[],
  failure: string | undefined,
): readonly Result[] {
  const complete = sized.filter(({ costs }) => costs.length > 0)
  return failure !== undefined && complete.length < 2 ? [] : [resultOf(series, complete, failure)]
}

interface Measured {
  readonly measured: ReadonlyMap<string, readonly Sized[]>
  /** The first line of the error that ended the measurement early. The sizes before it are kept. */
  readonly failure: string | undefined
}

async function measureAll(
  subject: Subject,
  series: readonly Series[],
  overrides: Overrides,
): Promise<Measured> {
  const sizes = sizesOf(subject, overrides.quick)
  const bySize = () => new Map<number, number[]>(sizes.map((size) => [size, []]))
  const measured: Costs = new Map(series.map(({ name }) => [name, bySize()]))
  const failure = await roundsOn(subject, overrides, measured).then(() => undefined, failureOf)
  const sizedOf = (costs: ReadonlyMap<number, readonly number[]>) =>
    [...costs].map(([size, some]) => ({ size, costs: some }))
  return {
    measured: new Map([...measured].map(([name, costs]) => [name, sizedOf(costs)])),
    failure,
  }
}

/** The costs of each series by size. */
type Costs = ReadonlyMap<string, ReadonlyMap<number, number[]>>

async function roundsOn(subject: Subject, { quick, ...rest }: Overrides, into: Costs) {
  const rounds = roundsOf(subject, quick)
  const stage: Stage = await subject.open({ quick, ...rest })
  try {
    await stage.warmUp?.()
    for (let round = 1; round <= rounds; round += 1) {
      for (const size of sizesOf(subject, quick)) {
        const beganAt = performance.now()
        await measureOne(stage, size, into)
        const seconds = ((performance.now() - beganAt) / 1_000).toFixed(1)
        progress(
          `round ${round} of ${rounds}, ${size.toLocaleString('en')} ${subject.of}: ${seconds} s`,
        )
      }
    }
  } finally {
    await stage.close()
  }
}

async function measureOne(stage: Stage, size: number, into: Costs): Promise<void> {
  try {
    const costs = await stage.measure(size)
    for (const [name, sized] of into) {
      const some = costs[name] ?? []
      if (some.length === 0) throw new Error(`"${name}" has no cost`)
      sized.get(size)?.push(...some)
    }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new Error(`${size.toLocaleString('en')}: ${reason}`, { cause })
  }
}

/** Reports the error. The other subjects are still measured, because a run takes hours. */
function failureOf(error: unknown): string {
  const { message, stack, cause } = error instanceof Error ? error : new Error(String(error))
  progress(`${stack ?? message}\n${cause instanceof Error ? (cause.stack ?? '') : ''}`)
  return message.split('\n')[0] ?? ''
}
