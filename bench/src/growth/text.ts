// One series as a table.
import { aligned } from '../report.ts'
import type { GaugeVerdict } from '../gauge.ts'
import { mediansOf } from './fit.ts'
import { nameOf } from './subject.ts'
import type { Result } from './result.ts'

const WORDS: Readonly<Record<GaugeVerdict['kind'], string>> = {
  met: 'within its bound',
  missed: 'ABOVE its bound',
  undecided: 'no verdict: noisy',
  noisy: 'no verdict: noisy',
  unmeasured: 'NOT MEASURED at all sizes',
}

/** Below it, the cost is not proportional to the size, and its share for each means nothing. */
const PROPORTIONAL = 1

/** Returns the costs by size, the fitted exponent, its bound and the verdict. */
export function seriesText({ series, sized, fit, exponent, verdict }: Result): string {
  const { subject, unit, shows, bound } = series
  const isProportional = bound >= PROPORTIONAL
  const points = mediansOf(sized)
  const rows = points.map(({ x, y }, at) => {
    const before = points[at - 1]
    return [
      x.toLocaleString('en'),
      digits(y),
      ...(isProportional ? [digits(y / x)] : []),
      before === undefined ? '' : `${(y / before.y).toFixed(2)} x`,
      before === undefined ? '' : `${(x / before.x).toFixed(1)} x`,
    ]
  })
  const interval = `${exponent.median.toFixed(2)} [${exponent.low.toFixed(2)} to ${exponent.high.toFixed(2)}]`
  return [
    `${nameOf(series)}: ${shows}`,
    aligned([
      [subject.of, unit, ...(isProportional ? [`${unit} each`] : []), 'cost', 'size'],
      ...rows,
    ]),
    `exponent ${interval}, bound ${bound}: ${WORDS[verdict.kind]}`,
    `constant part ${digits(fit.constant)} ${unit}, ${fittedOn(fit.sizes)}`,
  ].join('\n')
}

const LIST = new Intl.ListFormat('en')

const fittedOn = (sizes: readonly number[]) =>
  sizes.length === 0
    ? 'and no part that grows matters'
    : `fitted on ${LIST.format(sizes.map((size) => size.toLocaleString('en')))}`

/** Three significant digits, without an exponent. */
export const digits = (value: number): string =>
  value === 0
    ? '0'
    : value.toLocaleString('en', { maximumSignificantDigits: Math.abs(value) < 1_000 ? 3 : 6 })
