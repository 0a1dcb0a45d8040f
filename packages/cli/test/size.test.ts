import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '@redrive/dev-support'
import { describe, expect, test } from 'vitest'
import { textOf } from '../src/commands/size.ts'
import { type Load, sizeOf } from '../src/size/model.ts'

const load: Load = {
  messagesPerDay: 10_000_000,
  failures: 0.001,
  retentionDays: 14,
  bodyBytes: 1_000,
  sources: 10,
  processes: 2,
}

describe('the size of a deployment', () => {
  test('is that of the measured catalog for 5,000,000 dead letters of 1 KB', () => {
    const measured = sizeOf({ ...load, failures: 5_000_000 / 14 / load.messagesPerDay })
    expect(Math.round(measured.rows)).toBe(5_000_000)
    // docs/benchmarks.md: 20 GB.
    expect(measured.diskBytes / 1e9).toBeCloseTo(20, 5)
    expect(measured.bottlenecks[0]).toMatchObject({ of: 5_000_000, basis: 'measured' })
  })

  test('names each limit that a large system exceeds', () => {
    const { bottlenecks } = sizeOf({ ...load, failures: 0.07, sources: 1_000, processes: 6 })
    const exceeded = bottlenecks.filter(({ used, of }) => used > of).map(({ name }) => name)
    expect(exceeded).toEqual([
      'dead letters in the catalog',
      'dead letters of a day',
      'dead letters of a day in one replay run',
      'sources with separate metrics',
      'connections to PostgreSQL in a rollout',
    ])
  })

  test('fits the default of PostgreSQL with two pods of each Deployment of the chart, also in a rollout', () => {
    const { connections, bottlenecks } = sizeOf({ ...load, processes: 4 })
    expect(connections).toBe(60)
    expect(bottlenecks.at(-1)).toMatchObject({ used: 90, of: 97 })
  })

  test.each([
    ['redrive size', load],
    [
      'redrive size --messages-per-day 100000000 --failures 0.007 --sources 1000',
      { ...load, messagesPerDay: 100_000_000, failures: 0.007, sources: 1_000 },
    ],
  ])('%s prints what docs/sizing.md shows', (command, given) => {
    const page = readFileSync(join(ROOT, 'docs/sizing.md'), 'utf8')
    expect(page).toContain(`$ ${command}\n${textOf(sizeOf(given))}`)
  })
})
