import { describe, expect, it } from 'vitest'
import type { Measurement, Series } from '../src/harness.ts'
import { machineLine, selfCheckLine, table, verdictLines } from '../src/report.ts'
import { checkSelf, exitCode, type Goal, judge, GATE_3_PERCENT } from '../src/verdict.ts'

const ROUNDS = 60

function series(name: string, wallNs: (round: number) => number, cpuNs = wallNs): Series {
  const rounds = Array.from({ length: ROUNDS }, (_, round) => round)
  return { name, count: 1_000, wallNs: rounds.map(wallNs), cpuNs: rounds.map(cpuNs) }
}

/**
 * Returns a measurement: "peer" costs 1,000 ns, its twin `twinFactor` times that, "ours" the given
 * value.
 */
function measured(ours: (round: number) => number, twinFactor = 1): Measurement {
  return {
    series: [
      series('peer', () => 1_000),
      series('ours', ours),
      series('peer (again)', () => 1_000 * twinFactor),
    ],
    twin: { of: 'peer', name: 'peer (again)' },
  }
}

const goal: Goal = {
  name: 'ours/peer',
  candidate: 'ours',
  against: 'peer',
  metric: 'wallNs',
  atMost: 0.5,
}

function lineFor(measurement: Measurement, asked: Goal = goal): string | undefined {
  const verdict = judge(measurement, asked, GATE_3_PERCENT)
  return verdictLines([{ name: 'demo', verdicts: [verdict] }])[0]
}

function codeFor(measurement: Measurement, asked: Goal = goal): number {
  return exitCode([judge(measurement, asked, GATE_3_PERCENT)])
}

describe('a verdict line', () => {
  it('shows PASS when the whole interval meets the goal', () => {
    const measurement = measured((round) => 400 + (round % 3))
    expect(lineFor(measurement)).toBe('PASS demo:ours/peer 0.401x[0.401-0.401] wall<=0.500x')
    expect(codeFor(measurement)).toBe(0)
  })

  it('shows SHORT when the median misses the goal', () => {
    const measurement = measured(() => 620)
    expect(lineFor(measurement)).toBe('SHORT demo:ours/peer 0.620x[0.620-0.620] wall<=0.500x')
    expect(codeFor(measurement)).toBe(1)
  })

  it('counts a goal that is exactly reached as met', () => {
    expect(
      codeFor(
        measured(() => 1_000),
        { ...goal, atMost: 1 },
      ),
    ).toBe(0)
  })

  it('is undecided when the median meets the goal and the interval crosses it', () => {
    const measurement = measured((round) => (round % 2 === 0 ? 400 : 600) + round / 10)
    expect(lineFor(measurement)).toMatch(
      /^SHORT demo:ours\/peer 0\.49\dx\[0\.40\d-0\.60\d\] undecided: more rounds needed wall<=0\.500x$/,
    )
    expect(codeFor(measurement)).toBe(1)
  })

  it('does not judge when a candidate differs from itself, whatever the figure', () => {
    for (const [twinFactor, shown] of [
      [1.05, '1.050'],
      [0.97, '0.970'],
    ] as const) {
      const measurement = measured(() => 100, twinFactor)
      expect(lineFor(measurement)).toBe(`SHORT demo:ours/peer noisy: A/A ${shown} wall<=0.500x`)
      expect(codeFor(measurement)).toBe(1)
    }
  })

  it('judges at the edge of the A/A range', () => {
    expect(codeFor(measured(() => 100, 1.0199))).toBe(0)
    expect(codeFor(measured(() => 100, 0.9801))).toBe(0)
  })

  it('falls short when a candidate was not measured, so that no candidate is omitted', () => {
    const measurement = measured(() => 100)
    expect(lineFor(measurement, { ...goal, candidate: 'gone' })).toBe(
      'SHORT demo:ours/peer not measured: no candidate "gone" wall<=0.500x',
    )
    const other = { ...goal, against: 'lost' }
    expect(lineFor(measurement, other)).toContain('no candidate "lost"')
    expect(codeFor(measurement, other)).toBe(1)
  })

  it('judges CPU by CPU, with the A/A of CPU', () => {
    const measurement: Measurement = {
      series: [
        series(
          'peer',
          () => 1_000,
          () => 1_000,
        ),
        series(
          'ours',
          () => 900,
          () => 200,
        ),
        series(
          'peer (again)',
          () => 1_500,
          () => 1_000,
        ),
      ],
      twin: { of: 'peer', name: 'peer (again)' },
    }
    expect(lineFor(measurement, { ...goal, metric: 'cpuNs' })).toBe(
      'PASS demo:ours/peer 0.200x[0.200-0.200] cpu<=0.500x',
    )
    expect(lineFor(measurement)).toContain('noisy')
  })
})

describe('an aim', () => {
  it('is marked, comes before the goals, and does not fail the run', () => {
    const measurement = measured(() => 450)
    const verdicts = [goal, { ...goal, name: 'stretch', atMost: 0.4, aim: true as const }].map(
      (each) => judge(measurement, each, GATE_3_PERCENT),
    )
    expect(verdictLines([{ name: 'demo', verdicts }])).toEqual([
      'aim: SHORT demo:stretch 0.450x[0.450-0.450] wall<=0.400x',
      'PASS demo:ours/peer 0.450x[0.450-0.450] wall<=0.500x',
    ])
    expect(exitCode(verdicts)).toBe(0)
  })
})

describe('the table', () => {
  it('shows costs, quartiles and ratios in aligned columns', () => {
    expect(
      table(
        measured((round) => 40 + round),
        'peer',
      ),
    ).toBe(
      [
        'candidate     wall ns/msg    quartiles  x base         95 %  cpu ns/msg  cpu x',
        'peer                1,000  1,000-1,000   1.000  1.000-1.000       1,000  1.000',
        'ours                 69.5    54.8-84.3   0.069  0.062-0.077        69.5  0.069',
        'peer (again)        1,000  1,000-1,000   1.000  1.000-1.000       1,000  1.000',
      ].join('\n'),
    )
  })

  it('rejects a baseline that was not measured', () => {
    expect(() =>
      table(
        measured(() => 1),
        'gone',
      ),
    ).toThrow('No candidate "gone"')
  })
})

describe('the other lines', () => {
  it('name the machine', () => {
    const machine = {
      cpu: 'Fast CPU',
      cores: 2,
      node: 'v24.0.0',
      platform: 'linux x64',
      loadAverage: [0.5, 1, 2.345],
    }
    expect(machineLine(machine)).toBe(
      'Fast CPU, 2 cores, node v24.0.0, linux x64, load average 0.50 1.00 2.35',
    )
  })

  it('show the precision of the run and why it is enough', () => {
    const range = { low: 0.9, high: 1.1, reason: 'the effect is tenfold' }
    const quiet = checkSelf(
      measured(() => 1, 1.05),
      'wallNs',
      range,
    )
    expect(selfCheckLine('peer', quiet)).toBe(
      'A/A wall of "peer": 1.050 [1.050-1.050], within 0.9-1.1 (the effect is tenfold)',
    )
    const loud = checkSelf(
      measured(() => 1, 1.2),
      'wallNs',
      range,
    )
    expect(selfCheckLine('peer', loud)).toContain('OUTSIDE 0.9-1.1')
  })
})
