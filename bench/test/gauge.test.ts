import { describe, expect, it } from 'vitest'
import { type Gauge, type GaugeVerdict, judgeFigure, type Limit } from '../src/gauge.ts'
import { gaugeOf as latencyGauge, type Second } from '../src/rabbitmq/latency.ts'
import { gaugeOf as memoryGauge, type MemorySample } from '../src/rabbitmq/memory.ts'
import { gaugeLines } from '../src/report.ts'

const limit: Limit = { name: 'wait.p99', unit: 'ms', below: 10 }

function lineFor(verdict: GaugeVerdict): string | undefined {
  return gaugeLines({ name: 'demo', summary: '', details: '', verdicts: [verdict] })[0]
}

describe('a gauge', () => {
  it('is met when the whole interval is below the limit', () => {
    const verdict = judgeFigure(limit, { median: 4, low: 3, high: 9.5 })
    expect(lineFor(verdict)).toBe('PASS demo:wait.p99 4.000ms[3.000 to 9.500] <10ms')
  })

  it('is undecided when only the figure is below, and missed when it is not', () => {
    const wide = judgeFigure(limit, { median: 4, low: 3, high: 10 })
    expect(lineFor(wide)).toBe(
      'SHORT demo:wait.p99 4.000ms[3.000 to 10.0] undecided: a longer run is needed <10ms',
    )
    const above = judgeFigure(limit, { median: 12, low: 8, high: 14 })
    expect(lineFor(above)).toBe('SHORT demo:wait.p99 12.0ms[8.000 to 14.0] <10ms')
  })

  it('reports why it does not judge', () => {
    expect(lineFor({ kind: 'noisy', limit, why: 'A/A 3 ms' })).toBe(
      'SHORT demo:wait.p99 noisy: A/A 3 ms <10ms',
    )
  })
})

const kindsOf = ({ verdicts }: Gauge) => verdicts.map(({ kind }) => kind)

describe('the latency gauge', () => {
  /** Returns a hundred of each kind per second; the bare confirm takes 5 ms. */
  function seconds(retryMs: number, deadLetterMs: number, againMs = 5): Second[] {
    const second = {
      retry: many(retryMs),
      confirm: many(5),
      deadLetter: many(deadLetterMs),
      'confirm (again)': many(againMs),
    }
    return Array.from({ length: 5 }, () => second)
  }
  const many = (ms: number) => Array.from({ length: 100 }, () => ms)

  it('counts only the time beyond the bare confirm', () => {
    expect(kindsOf(latencyGauge(seconds(14, 9)))).toEqual(['met', 'met'])
    expect(kindsOf(latencyGauge(seconds(15, 10)))).toEqual(['missed', 'missed'])
  })

  it('does not judge when two runs of the bare confirm differ', () => {
    expect(kindsOf(latencyGauge(seconds(6, 6, 8)))).toEqual(['noisy', 'noisy'])
  })

  it('shows every kind in its own row', () => {
    const { details } = latencyGauge(seconds(6, 7))
    expect(details.split('\n')[3]).toMatch(/^deadLetter +500 +7\.00 +7\.00 +7\.00 +7\.00 +2\.00/)
  })
})

describe('the memory gauge', () => {
  function samples(rssMb: (minute: number) => number): MemorySample[] {
    const minutes = Array.from({ length: 100 }, (_, index) => index / 10)
    return minutes.map((minute) => ({ minute, heapMb: 12 + (minute % 1), rssMb: rssMb(minute) }))
  }

  it('ignores growth in the first half', () => {
    const settles = samples((minute) => 80 + Math.min(minute, 4) * 10)
    expect(kindsOf(memoryGauge(settles))).toEqual(['met', 'met'])
  })

  it('finds a leak of more than a megabyte per minute', () => {
    const leaks = samples((minute) => 80 + minute * 1.5)
    expect(kindsOf(memoryGauge(leaks))).toEqual(['met', 'missed'])
  })
})
