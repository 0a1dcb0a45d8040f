import type { Run } from '@redrive/api'
import { describe, expect, test } from 'vitest'
import { editedBody, prettyText } from '../src/words/edited-body.ts'
import { gateText, isOverride } from '../src/words/gates.ts'
import { firstTab, tabCount } from '../src/words/item-tabs.ts'
import {
  estimateMs,
  expiryText,
  fieldsOf,
  isExpired,
  isSamePlan,
  paceText,
  PLAN_LIFE_MS,
  proofTexts,
  readPlan,
} from '../src/words/plan.ts'
import { queuedOf, ratesOf, settledOf, stagesOf } from '../src/words/run-progress.ts'
import { inView, sectionOf } from '../src/words/runs.ts'

const NONE = {
  ...{ planned: 0, skipped: 0, queued: 0, claimed: 0, publishing: 0, published: 0, resolved: 0 },
  ...{ failed_again: 0, unknown: 0, not_returned: 0, expired: 0, cancelled: 0 },
}

const run = (counts: Partial<Run['counts']>, options: Partial<Run['options']> = {}): Run => ({
  ...{ id: 'r', source: 'orders', state: 'running', hash: 'h', note: '', selection: {} },
  ...{ isChanged: false, plannedBy: 'ada', plannedAt: 0, skipped: {} },
  counts: { ...NONE, ...counts },
  options: {
    ...{ ratePerSecond: 50, canary: [1, 5, 50], maxFailureRatio: 0.1, outcomeTimeoutMs: 300_000 },
    ...{ onUnconfirmed: 'pause', maxAgeMs: 0, inboxRetentionMs: 0, overrides: [] },
    ...options,
  },
})

describe('the fields of a plan', () => {
  const fields = fieldsOf(run({}))
  test('make the same plan again', () => {
    expect(readPlan(fields)).toEqual({
      options: {
        ...{ ratePerSecond: 50, maxFailureRatio: 0.1, outcomeTimeout: '300000ms' },
        canary: [1, 5, 50],
      },
    })
    expect(isSamePlan(fields, { ...fields })).toBe(true)
    expect(isSamePlan(fields, { ...fields, overrides: ['too_old'] })).toBe(false)
  })
  test('can have no canary, a note, overrides and a patch', () => {
    const patch = '[{"op":"remove","path":"/a"}]'
    const all = { ...fields, canary: '', note: ' incident 4411 ', overrides: ['too_old'] as const }
    expect(readPlan({ ...all, patch })).toMatchObject({
      options: {
        ...{ canary: [], note: 'incident 4411', overrides: ['too_old'] },
        change: { patch: [{ op: 'remove', path: '/a' }] },
      },
    })
  })
  test.each([
    ['rate', '0'],
    ['rate', ''],
    ['rate', 'fast'],
    ['canary', '1, x'],
    ['canary', '0'],
    ['failurePercent', '101'],
    ['timeoutMinutes', '0'],
    ['patch', '{'],
    ['patch', '{}'],
    ['patch', '[]'],
  ] as const)('report a wrong %s: %s', (name, value) => {
    const read = readPlan({ ...fields, [name]: value })
    expect(Object.keys('problems' in read ? read.problems : {})).toEqual([name])
  })
})

describe('a pace', () => {
  test('is the time to publish, and waits of stages without confirmations', () => {
    expect(estimateMs(run({}), 5_000)).toBe(100_000)
    const unproven = run({}, { proof: 'returns', canary: [1, 5] })
    expect(estimateMs(unproven, 5_000)).toBe(100_000 + 3 * 300_000)
    expect(estimateMs(unproven, 1)).toBe(20 + 300_000)
    expect(paceText(run({}), 5_000)).toBe('1 → 5 → 50, then 50\u00a0per second, about 1\u00a0min')
  })
  test('names the proof of the outcomes', () => {
    expect(proofTexts(run({}))).toMatchObject({ isProven: true })
    expect(proofTexts(run({}, { proof: 'returns' })).text).toContain('do not confirm')
  })
})

describe('the progress of a run', () => {
  test('has stages with their outcomes', () => {
    const some = run({ resolved: 4, failed_again: 1, published: 1, queued: 94, skipped: 7 })
    expect(stagesOf(some)).toEqual([
      { size: 1, settled: 1, isLast: false },
      { size: 5, settled: 4, isLast: false },
      { size: 50, settled: 0, isLast: false },
      { size: 44, settled: 0, isLast: true },
    ])
    expect(settledOf(some)).toBe(5)
    expect(queuedOf(some)).toBe(94)
  })
  test('needs no stage that is larger than the run', () => {
    expect(stagesOf(run({ queued: 3 })).map(({ size }) => size)).toEqual([1, 2])
  })
  test('has a rate from what the page has seen', () => {
    const bars = ratesOf(
      [
        { at: 0, settled: 0 },
        { at: 2_000, settled: 100 },
        { at: 4_000, settled: 140 },
      ],
      6_000,
    )
    expect(bars.slice(-3)).toEqual([
      { at: 0, count: 50 },
      { at: 2_000, count: 20 },
      { at: 4_000, count: 0 },
    ])
  })
})

test('a plan expires, and an approved run does not', () => {
  const planned = { state: 'planned', plannedAt: 1_000 } as const
  const until = planned.plannedAt + PLAN_LIFE_MS
  expect([isExpired(planned, until - 1), isExpired(planned, until)]).toEqual([false, true])
  expect(isExpired({ ...planned, state: 'paused' }, until)).toBe(false)
  expect([expiryText(planned, until - 60_000), expiryText(planned, until)]).toEqual([
    'expires in 1\u00a0min',
    'expired',
  ])
})

test('messages of a run are in tabs, and the first one needs a reader', () => {
  const some = run({ resolved: 4, unknown: 2, not_returned: 1, skipped: 7 })
  expect(tabCount(some, 'unknown')).toBe(3)
  expect(tabCount(some, 'all')).toBe(14)
  expect(firstTab(some)).toBe('unknown')
  expect(firstTab(run({ resolved: 4 }))).toBe('all')
})

test('a gate has words, and some can be overridden', () => {
  expect(gateText('too_old').title).toBe('Too old')
  expect(gateText('new_gate').title).toBe('new_gate')
  expect(isOverride('failed_recently')).toBe(true)
  expect(isOverride('not_open')).toBe(false)
})

test('runs are in views and sections', () => {
  const paused = { ...run({ unknown: 1 }), state: 'paused' } as const
  expect(inView(paused, 'active', 'ben')).toBe(true)
  expect(inView(paused, 'unconfirmed', 'ben')).toBe(true)
  expect(inView(paused, 'mine', 'ben')).toBe(false)
  expect(inView(paused, 'mine', 'ada')).toBe(true)
  expect(sectionOf(paused)).toBe('Active')
  expect(sectionOf({ state: 'plan_expired' })).toBe('Ended')
})

describe('an edited body', () => {
  test('is shown with lines unless a number would change', () => {
    expect(prettyText('{"a":1}')).toBe('{\n  "a": 1\n}')
    expect(prettyText('{"id":12345678901234567890}')).toBe('{"id":12345678901234567890}')
    expect(prettyText('{"price":1.10}')).toBe('{"price":1.10}')
    expect(prettyText('{"note":"1.10"}')).toBe('{\n  "note": "1.10"\n}')
    expect(prettyText('plain')).toBe('plain')
  })
  test.for([
    ['CRLF', 'a\r\nb\r\n', 'a\nc\nd\n', 'a\r\nc\r\nd\r\n'],
    ['CR', 'a\rb', 'a\nc', 'a\rc'],
    ['LF', 'a\nb', 'a\nc', 'a\nc'],
    ['none', 'a', 'a\nb', 'a\nb'],
    ['mixed', 'a\r\nb\nc\rd\n', 'a\nb\nx\nd\n', 'a\r\nb\nx\rd\n'],
    ['removed lines', 'a\r\nb\nc\rd', 'a\nd', 'a\r\nd'],
    ['JSON', '{"a":1.10,\r\n"b":2}', '{"a":1.10,\n"b":3}', '{"a":1.10,\r\n"b":3}'],
  ] as const)('keeps the line ends: %s', ([, original, typed, expected]) => {
    const changed = editedBody(original, typed)
    const base64 = changed.kind === 'changed' ? changed.base64 : ''
    expect(Buffer.from(base64, 'base64').toString()).toBe(expected)
    // A text area returns line feeds, so the original counts as unchanged with them.
    expect(editedBody(original, original.replaceAll(/\r\n?/g, '\n'))).toEqual({ kind: 'same' })
  })
  test('is the same, invalid, or changed', () => {
    expect(editedBody('{"a":1}', prettyText('{"a":1}'))).toEqual({ kind: 'same' })
    expect(editedBody('{"a":1}', '{"a":').kind).toBe('invalid')
    expect(editedBody('plain', 'other')).toEqual({ kind: 'changed', base64: btoa('other') })
    const changed = editedBody('{"a":1}', '{"a":"ü"}')
    expect(changed.kind === 'changed' && Buffer.from(changed.base64, 'base64').toString()).toBe(
      '{"a":"ü"}',
    )
  })
})
