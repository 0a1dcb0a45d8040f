import { describe, expect, it } from 'vitest'
import {
  drawing,
  pageOf,
  plotText,
  shortcomings,
  simulateOutage,
  type StormOptions,
  TEXTBOOK,
} from '@redrive/storm'
import { drainRatio } from '@redrive/storm/internal'

const WEATHER = {
  kind: 'refuse',
  // The shortest outage with goals: each process needs a few failures until its breaker opens.
  outageMs: 30_000,
  concurrency: 50,
  arrivalsPerSecond: 50,
  capacityPerSecond: 75,
  seed: 7,
} as const satisfies Omit<StormOptions, 'policy'>

const policyOf = (name: string) => {
  const found = TEXTBOOK.find((one) => one.name === name)
  if (found === undefined) throw new Error(`no policy ${name}`)
  return found
}

describe('a simulated outage', () => {
  it('gives the same result for the same seed', async () => {
    const play = () => simulateOutage({ ...WEATHER, policy: {} })
    expect(await play()).toEqual(await play())
  })

  it('meets all goals with the default policy', async () => {
    const result = await simulateOutage({ ...WEATHER, policy: {} })
    expect(shortcomings(result)).toEqual([])
    expect(result.messages).toBeGreaterThan(WEATHER.arrivalsPerSecond * 50)
  })

  it('reports the effect of immediate attempts on good messages', async () => {
    const result = await simulateOutage({ ...WEATHER, policy: policyOf('A').policy })
    expect(shortcomings(result).join()).toMatch(/good messages given up/)
    expect(result.falseDeadLetters).toBeGreaterThan(0.1)
  })

  it('uses the timeout of the policy', async () => {
    // Each call takes at least 13 ms when the dependency is healthy: none ends in time.
    const result = await simulateOutage({ ...WEATHER, policy: { timeout: '5ms' } })
    expect(result.drainMs).toBeUndefined()
  })
})

describe('the goals', () => {
  const result = {
    ...{ messages: 1, attemptsPerMessage: 1, falseDeadLetters: 0, drainMs: 20, minimumMs: 20 },
    ...{ peak: 1, load: [] },
  }

  it('are met when the outage leaves no backlog', () => {
    expect(drainRatio({ ...result, drainMs: 0, minimumMs: 0 })).toBe(1)
    expect(drainRatio({ ...result, minimumMs: 0 })).toBe(1)
    expect(shortcomings({ ...result, minimumMs: 0 })).toEqual([])
  })

  it('are reported with enough digits to see that they are missed', () => {
    const missed = {
      ...{ attemptsPerMessage: 1.0504, falseDeadLetters: 0.0001, drainMs: 26.04, peak: 2.04 },
    }
    expect(shortcomings({ ...result, ...missed })).toEqual([
      '1.0504 attempts per message',
      '0.01 % of good messages given up',
      'drains in 1.302 x the shortest time',
      'peak of 2.04 x the arrivals',
    ])
  })
})

describe('a plot of it', () => {
  const load = [10, 10, 0, 0, 40, 10]
  const options = {
    load,
    columns: 6,
    rows: 4,
    arrivalsPerSecond: 10,
    capacityPerSecond: 20,
    outageFromS: 2,
    outageUntilS: 4,
  }

  it('has a bar for each span, the capacity, the arrivals and the outage', () => {
    expect(plotText(options)).toBe(
      [
        '          40/s ┤    █ ',
        '               ┤    █ ',
        ' capacity 20/s ┤╌╌╌╌█╌',
        ' arrivals 10/s ┤██··██',
        '        outage └──▓▓──',
      ].join('\n'),
    )
  })

  it('keeps a peak that is shorter than a column', () => {
    const text = plotText({ ...options, columns: 2 })
    expect(text.split('\n')[0]).toBe('          40/s ┤ █')
  })

  it('accepts a run of many hours', () => {
    const long = Array.from({ length: 300_000 }, (_, second) => (second === 299_000 ? 40 : 10))
    const text = plotText({ ...options, load: long, columns: 2 })
    expect(text.split('\n')[0]).toBe('          40/s ┤ █')
    const result = {
      ...{ messages: 1, attemptsPerMessage: 1, falseDeadLetters: 0, drainMs: 1, minimumMs: 1 },
      ...{ peak: 1, load: long },
    }
    const policy = { name: 'own', title: 'mine', policy: {} }
    expect(drawing('t', WEATHER, [{ policy, result }])).toContain('own: mine')
  })

  it('shows the name of every policy, as text', async () => {
    const result = await simulateOutage({ ...WEATHER, outageMs: 1_000, policy: {} })
    const played = [{ policy: { name: '<b>', title: 'mine & yours', policy: {} }, result }]
    for (const document of [drawing('t', WEATHER, played), pageOf('t', WEATHER, played)]) {
      expect(document).toContain('&#60;b&#62;: mine &#38; yours')
      expect(document).not.toContain('<b>')
    }
  })
})
