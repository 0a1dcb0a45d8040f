// Measures how cost grows with size, and judges the exponents.
import type { BenchCase, OpenGauge } from '../comparison.ts'
import { growing } from '../growth/run.ts'
import { nameOf, type Series, type Subject } from '../growth/subject.ts'
import { SERIES } from '../growth/table.ts'

const HOUR = 'hour'
const subjects = [...new Set(SERIES.map(({ subject }) => subject))]
const seriesOf = (subject: Subject) => SERIES.filter((one) => one.subject === subject)
const gaugeOf = (subject: Subject, series: readonly Series[]): OpenGauge => growing(subject, series)

/** Returns the gauge of a subject or of one series; undefined if no series has this name. */
function only(name: string): OpenGauge | undefined {
  if (name === HOUR) return async (overrides) => (await import('../growth/hour.ts')).hour(overrides)
  const chosen = SERIES.filter((one) => one.subject.name === name || nameOf(one) === name)
  const subject = chosen[0]?.subject
  return subject === undefined ? undefined : gaugeOf(subject, chosen)
}

export const bench: BenchCase = {
  summary: 'How cost grows with size: fitted exponents',
  comparisons: [],
  gauges: subjects.map((subject) => gaugeOf(subject, seriesOf(subject))),
  only: {
    names: [...subjects.map(({ name }) => name), ...SERIES.map(nameOf), HOUR],
    open: only,
  },
}
