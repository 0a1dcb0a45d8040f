import { describe, expect, test } from 'vitest'
import { ALERT_LIMITS, alertsOf, type CatalogCounts, metricsOf } from '../src/index.ts'

const AT = 10_000_000

const counts = (of: {
  readonly open: number
  readonly inGroup?: number
  readonly ageMs?: number
  readonly isMuted?: boolean
  readonly setAside?: number
  readonly createdAgo?: number
  readonly regressedAgo?: number
  readonly expiring?: number
  readonly mismatchedAgo?: number
}): CatalogCounts => ({
  at: AT,
  sources: [
    {
      source: 's',
      open: of.open,
      replaying: 0,
      undecided: 0,
      count: of.open * 2,
      attempts: of.open * 5,
      openByClass: { schema: of.open },
      oldestAt: of.open === 0 ? undefined : AT - (of.ageMs ?? 0),
      expiring: of.expiring ?? 0,
      nextExpiryAt: of.expiring === undefined ? undefined : AT + 1_000,
      lastIngestedAt: AT,
      setAside: of.setAside ?? 0,
      mismatches: of.mismatchedAgo === undefined ? 0 : 3,
      mismatchedAt: of.mismatchedAgo === undefined ? undefined : AT - of.mismatchedAgo,
    },
  ],
  groups: [
    {
      id: 'g',
      source: 's',
      title: 't',
      open: of.inGroup ?? 0,
      isMuted: of.isMuted ?? false,
      createdAt: AT - (of.createdAgo ?? ALERT_LIMITS.freshMs),
      regressedAt: of.regressedAgo === undefined ? undefined : AT - of.regressedAgo,
    },
  ],
})

const kinds = (of: Parameters<typeof counts>[0]) => alertsOf(counts(of)).map(({ kind }) => kind)

describe('alerts', () => {
  test.each([
    ['99 are not deep', { open: 99 }, []],
    ['100 are', { open: 100 }, ['depth']],
    ['an age just below half an hour raises no alert', { open: 1, ageMs: 1_799_999 }, []],
    ['half an hour is', { open: 1, ageMs: 1_800_000 }, ['age']],
    ['dead letters that expire soon raise an alert', { open: 1, expiring: 1 }, ['expiring']],
    ['half of a source does not dominate it', { open: 40, inGroup: 20 }, []],
    ['more than half does', { open: 40, inGroup: 21 }, ['dominance']],
    ['but not ten', { open: 10, inGroup: 10 }, []],
    ['eleven do', { open: 11, inGroup: 11 }, ['dominance']],
    ['a group is new for ten minutes', { open: 1, createdAgo: 599_999 }, ['new_signature']],
    ['a regression is fresh for ten minutes', { open: 1, regressedAgo: 599_999 }, ['regressed']],
    ['and not longer', { open: 1, regressedAgo: 600_000 }, []],
    [
      'a wrong replay id is recent for ten minutes',
      { open: 1, mismatchedAgo: 599_999 },
      ['replay_mismatch'],
    ],
    ['and no longer than that', { open: 1, mismatchedAgo: 600_000 }, []],
    [
      'a muted group raises no alert',
      { open: 50, inGroup: 50, isMuted: true, createdAgo: 0, regressedAgo: 0 },
      [],
    ],
  ])('%s', (_, of, expected) => {
    expect(kinds(of)).toEqual(expected)
  })

  test('a source can have other limits; its other limits stay', () => {
    const all = counts({ open: 60, ageMs: 1_800_000 })
    const limits = { ...ALERT_LIMITS, sources: { s: { depth: 50 }, other: { ageMs: 1 } } }
    expect(alertsOf(all, limits).map(({ kind }) => kind)).toEqual(['depth', 'age'])
    expect(metricsOf(all, limits).overThreshold).toEqual(['s'])
    const quiet = { ...ALERT_LIMITS, sources: { s: { depth: 61, ageMs: 1_800_001 } } }
    expect(alertsOf(all, quiet)).toEqual([])
  })
})

describe('metrics', () => {
  test('are calculated from the counts', () => {
    expect(metricsOf(counts({ open: 100, ageMs: 7, expiring: 3 }))).toEqual({
      depth: 100,
      replaying: 0,
      undecided: 0,
      depthBySource: { s: 100 },
      depthByClass: { schema: 100 },
      oldestAgeMs: 7,
      averageAttempts: 2.5,
      expiring: 3,
      setAside: 0,
      overThreshold: ['s'],
    })
  })

  test('of an empty catalog are zero or undefined', () => {
    expect(metricsOf({ at: AT, sources: [], groups: [] })).toEqual({
      depth: 0,
      replaying: 0,
      undecided: 0,
      depthBySource: {},
      depthByClass: {},
      oldestAgeMs: undefined,
      averageAttempts: undefined,
      expiring: 0,
      setAside: 0,
      overThreshold: [],
    })
  })
})
