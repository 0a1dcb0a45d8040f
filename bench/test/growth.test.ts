import { describe, expect, it } from 'vitest'
import { type Hour, hourGauge } from '../src/growth/hour-gauge.ts'
import { plot } from '../src/growth/plot.ts'
import { resultOf } from '../src/growth/result.ts'
import { nameOf, type Series } from '../src/growth/subject.ts'
import { SERIES } from '../src/growth/table.ts'
import { seriesText } from '../src/growth/text.ts'
import { gaugeLines } from '../src/report.ts'

const SIZES = [10, 30, 100, 300, 1_000, 3_000, 10_000]

describe('the text of a series', () => {
  const subject = { name: 'queues', of: 'queues', sizes: [], quickSizes: [] }
  const series: Series = {
    subject: { ...subject, rounds: 1, quickRounds: 1, open: () => Promise.reject(new Error()) },
    name: 'start',
    shows: 'time to start',
    unit: 'ms',
    bound: 1.1,
  }
  const offset = resultOf(
    series,
    SIZES.map((size) => ({ size, costs: [1_000 + size, 1_000 + size, 1_000 + size] })),
  )

  it('has the cost at each size, and its ratio to the size before', () => {
    const lines = seriesText(offset).split('\n')
    expect(lines[0]).toBe('queues.start: time to start')
    expect(lines[3]).toMatch(/^30 +1,030 +34.3 +1.02 x +3.0 x$/)
    expect(lines.at(-2)).toBe('exponent 1.00 [1.00 to 1.00], bound 1.1: within its bound')
    expect(lines.at(-1)).toMatch(/^constant part 1,000 ms, fitted on 1,000, 3,000,? and 10,000$/)
  })

  it('has a name and a judged exponent in the last lines', () => {
    const gauge = { name: 'growth.queues', summary: '', details: '', verdicts: [offset.verdict] }
    expect(gaugeLines(gauge)).toEqual([
      'PASS growth.queues:start.exponent 1.000[1.000 to 1.000] <1.1',
    ])
  })

  it('keeps the sizes before an error, and has no verdict', () => {
    const result = resultOf(series, offset.sized.slice(0, 3), '300: no connection')
    expect(seriesText(result)).toContain('NOT MEASURED at all sizes')
    const gauge = { name: 'growth.queues', summary: '', details: '', verdicts: [result.verdict] }
    expect(gaugeLines(gauge)).toEqual([
      'SHORT growth.queues:start.exponent not measured: 300: no connection <1.1',
    ])
  })

  it('has a plot inside its frame', () => {
    const places = [...plot(offset).matchAll(/c[xy]="([^"]+)"/g)].map(([, at]) => Number(at))
    expect(places).toHaveLength(2 * 4 * SIZES.length)
    expect(Math.min(...places)).toBeGreaterThanOrEqual(50)
    expect(Math.max(...places)).toBeLessThanOrEqual(620)
  })
})

describe('the table of series', () => {
  it('has each name once, with ascending sizes', () => {
    const names = SERIES.map(nameOf)
    expect(new Set(names).size).toBe(names.length)
    for (const { subject } of SERIES) {
      for (const sizes of [subject.sizes, subject.quickSizes]) {
        expect([...sizes].sort((a, b) => a - b)).toEqual(sizes)
      }
    }
  })
})

describe('the verdicts on an hour', () => {
  /** One request per second. */
  function hour(msAt: (second: number) => number, mbAt: (second: number) => number): Hour {
    const seconds = Array.from({ length: 3_600 }, (_, second) => second)
    const responses = seconds.map((at) => ({ name: 'page', dueMs: at * 1_000, ms: msAt(at) }))
    const load = { responses, errors: [], memory: [seconds.map(mbAt)] }
    const counts = { count: 10, sent: 100, lost: 0, twice: 0, runs: 3 }
    return { ...counts, seconds: 3_600, roles: ['api'], load }
  }
  const kindsOf = (one: Hour) => hourGauge(one).verdicts.map(({ kind }) => kind)

  it('are met when reads stay as fast and memory stays flat', () => {
    const steady = hour(
      () => 10,
      (second) => 200 + Math.min(second, 300) / 10,
    )
    expect(kindsOf(steady)).toEqual(['met', 'met', 'met', 'met'])
  })

  it('compare only the first and the last five minutes', () => {
    const slow = hour(
      (second) => (second < 3_400 ? 10 : 25),
      () => 200,
    )
    expect(kindsOf(slow)[0]).toBe('missed')
    const bump = hour(
      (second) => (second > 1_000 && second < 2_000 ? 90 : 10),
      () => 200,
    )
    expect(kindsOf(bump)[0]).toBe('met')
  })

  it('find a leak and a lost message', () => {
    const leak = hour(
      () => 10,
      (second) => 200 + second / 50,
    )
    expect(kindsOf({ ...leak, lost: 1 })).toEqual(['met', 'missed', 'missed', 'met'])
  })
})
