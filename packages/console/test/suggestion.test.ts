import type { Group, Run } from '@redrive/api'
import { describe, expect, test } from 'vitest'
import {
  groupOfRun,
  lastEnded,
  outcomeText,
  replacementOf,
  runTitle,
  sizeOf,
} from '../src/words/runs.ts'
import { actionText, suggestionFor } from '../src/words/suggestion.ts'
import { barsOf, boundsOf, latestOf, peakOf, RANGES } from '../src/words/trends.ts'
import { decisionsOf, verdictOf } from '../src/words/verdict.ts'

const NOW = Date.UTC(2026, 10, 18, 3, 4, 12)
const MINUTE_MS = 60_000
const plain = (text: string) => text.replaceAll('\u00a0', ' ')

const aGroup = (changes: Partial<Group> = {}): Group => ({
  id: 'a',
  source: 'orders',
  signature: '1-a',
  algorithm: 1,
  class: 'transient',
  title: 'connect ECONNREFUSED',
  sample: 'connect ECONNREFUSED',
  state: 'open',
  regressed: false,
  firstSeenAt: NOW - 23 * MINUTE_MS,
  lastSeenAt: NOW - 6 * MINUTE_MS,
  count: 38_112,
  openCount: 38_112,
  replayingCount: 0,
  undecidedCount: 0,
  mergedCount: 0,
  signatureFrom: 'rules',
  attempts: 8,
  ...changes,
})

const NO_ITEMS = {
  ...{ planned: 0, skipped: 0, queued: 0, claimed: 0, publishing: 0, published: 0, resolved: 0 },
  ...{ failed_again: 0, unknown: 0, not_returned: 0, expired: 0, cancelled: 0 },
}
const aRun = (changes: Partial<Run> = {}) =>
  ({
    source: 'payments',
    state: 'running',
    isChanged: true,
    counts: { ...NO_ITEMS, queued: 743, resolved: 412, published: 5, skipped: 44 },
    selection: { group: 'a' },
    ...changes,
  }) as Run

describe('a suggestion', () => {
  const growing = NOW - 20_000
  test.for([
    ['an active run', aGroup(), aRun(), 'watch'],
    ['a plan without an approval', aGroup(), aRun({ state: 'planned' }), 'approve'],
    [
      'a schema that still fails',
      aGroup({ class: 'schema', lastSeenAt: growing }),
      undefined,
      'fix',
    ],
    ['a schema that no longer fails', aGroup({ class: 'schema' }), undefined, 'repair'],
    ['a business failure', aGroup({ class: 'business' }), undefined, 'discard'],
    ['a transient failure that ended', aGroup(), undefined, 'replay'],
    ['a transient failure that continues', aGroup({ lastSeenAt: growing }), undefined, 'wait'],
    ['an integration failure', aGroup({ class: 'integration' }), undefined, 'look'],
    ['an unknown failure', aGroup({ class: 'unknown' }), undefined, 'look'],
  ] as const)('for %s', ([, group, run, kind]) => {
    expect(suggestionFor({ group, run, now: NOW }).kind).toBe(kind)
  })

  test('has a reason with the facts, and a button with the count', () => {
    const suggestion = suggestionFor({ group: aGroup(), now: NOW })
    expect(plain(suggestion.reason)).toBe('A transient failure, and none for 6 min.')
    expect(actionText(suggestion, 38_112)).toBe('Replay 38,112…')
    const { reason } = suggestionFor({ group: aGroup(), run: aRun(), now: NOW })
    expect(reason).toBe('Repair and replay 1,160 to payments is running.')
    const owned = suggestionFor({ group: aGroup({ class: 'business', owner: 'ada' }), now: NOW })
    expect(owned.reason).not.toContain('no owner')
  })
})

describe('the verdict', () => {
  const facts = { depth: 39_654, sources: [], now: NOW }

  test('counts the groups that an alert names or that are large, largest first', () => {
    const groups = [
      aGroup({ id: 'small', openCount: 3 }),
      aGroup({ id: 'named', openCount: 12 }),
      aGroup({ id: 'muted', state: 'muted' }),
      aGroup({ id: 'large', openCount: 100 }),
    ]
    const alerts = [{ kind: 'new_signature' as const, source: 'orders', group: 'named' }]
    expect(decisionsOf(groups, alerts).map(({ id }) => id)).toEqual(['large', 'named'])
  })

  test('contains how much is wrong, where, and whether it grows', () => {
    const decisions = [aGroup(), aGroup({ id: 'b', openCount: 858, lastSeenAt: NOW - 20_000 })]
    const { title, sentences } = verdictOf({ ...facts, decisions })
    expect(plain(title)).toBe('39,654 open dead letters. 2 groups need a decision.')
    expect(plain(sentences.join(' '))).toBe(
      '96 % are in one group, which has not failed for 6 min. 1 group is still growing.',
    )
  })

  test('is calm without open dead letters, and leaves unknown facts out', () => {
    const verdict = verdictOf({ ...facts, depth: 0, decisions: [] })
    expect(verdict).toEqual({ isCalm: true, title: 'No open dead letters.', sentences: [] })
  })
})

test('a run has a title, a size and its outcomes', () => {
  expect(sizeOf(aRun())).toBe(1_160)
  expect(runTitle(aRun({ isChanged: false }))).toBe('Replay 1,160 to payments')
  expect(outcomeText(aRun())).toBe('412 resolved, 5 published')
  expect(outcomeText(aRun({ counts: NO_ITEMS }))).toBe('No outcome yet')
  const cancelled = aRun({ state: 'cancelled', counts: { ...NO_ITEMS, resolved: 3 } })
  expect(outcomeText(cancelled)).toBe('Withdrawn before it started')
  expect(outcomeText({ ...cancelled, approvedBy: 'ben' })).toBe('3 resolved')
  expect([groupOfRun(aRun()), groupOfRun(aRun({ selection: { filter: 'x' } }))]).toEqual([
    'a',
    undefined,
  ])
})

test('the last runs are in the order of their ends, without withdrawn plans', () => {
  const ended = (id: string, endedAt: number, changes: Partial<Run> = {}) =>
    aRun({ id, endedAt, state: 'done', approvedBy: 'ben', ...changes })
  const withdrawn = { state: 'cancelled', approvedBy: undefined } as unknown as Partial<Run>
  const runs = [
    ended('withdrawn', 9, withdrawn),
    ended('planned last', 3),
    ended('cancelled', 5, { state: 'cancelled' }),
    ended('ended last', 7),
  ]
  expect(lastEnded(runs, 2).map(({ id }) => id)).toEqual(['ended last', 'cancelled'])
})

test('a withdrawn plan is replaced by the newest plan of the same planner and selection', () => {
  const plan = (id: string, plannedAt: number, changes: Partial<Run> = {}) =>
    aRun({ id, plannedAt, state: 'planned', plannedBy: 'ada', ...changes })
  const old = plan('old', 5, { state: 'cancelled' })
  const planned = [
    plan('earlier', 4),
    plan('newer', 6),
    plan('newest', 7),
    plan('other planner', 8, { plannedBy: 'ben' }),
    plan('other selection', 8, { selection: { group: 'b' } }),
    plan('other source', 8, { source: 'orders' }),
  ]
  expect(replacementOf(old, planned)?.id).toBe('newest')
  expect(replacementOf(old, planned.slice(3))).toBeUndefined()
  // A plan that is not withdrawn is not replaced.
  expect(replacementOf(plan('current', 5), planned)).toBeUndefined()
  expect(replacementOf({ ...old, approvedBy: 'ben' }, planned)).toBeUndefined()
})

test('a trend has a bar for every minute, and its latest is the last complete one', () => {
  const { after, before } = boundsOf(RANGES['2h'], NOW)
  expect([NOW - after, before - NOW]).toEqual([119 * MINUTE_MS + 12_000, 48_000])
  const bars = barsOf([{ at: before - 2 * MINUTE_MS, count: 11 }], RANGES['2h'], NOW)
  expect(bars).toHaveLength(120)
  expect([latestOf(bars), peakOf(bars), bars[0]?.count]).toEqual([11, 11, 0])
})
