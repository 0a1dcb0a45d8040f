import type { Output } from '@redrive/api'
import { ACTIONS } from '@redrive/api/enums'
import { describe, expect, test } from 'vitest'
import {
  expiresSoon,
  namesIn,
  ownActions,
  peopleOf,
  tokenCommand,
  type TokenForm,
  tokenProblem,
} from '../src/words/access.ts'
import { configText, matchText, ruleOf, withDraft } from '../src/words/fingerprints.ts'
import { maskRows } from '../src/words/masks.ts'

type Token = Output<'listTokens'>['tokens'][number]
type Session = Output<'listSessions'>['sessions'][number]

const FORM: TokenForm = {
  name: 'nightly-report',
  actions: ['view', 'export'],
  sources: 'orders*, payments',
  days: '30',
  isAgent: false,
}

describe('a new token', () => {
  test('has the command of its form', () => {
    expect(tokenCommand(FORM)).toBe(
      "redrive token create 'nightly-report' --allow view export --source 'orders*' 'payments' --days 30",
    )
    expect(tokenCommand({ ...FORM, name: "it's", isAgent: true })).toBe(
      "redrive token create 'it'\\''s' --allow view export --source 'orders*' 'payments' --days 30 --agent",
    )
    expect(tokenCommand({ ...FORM, name: '', actions: [], sources: '', days: '' })).toBe(
      'redrive token create NAME --allow ACTION --source SOURCE --days DAYS',
    )
  })

  test.for([
    [{}, undefined],
    [{ name: ' ' }, 'Enter a name.'],
    [{ actions: [] }, 'Choose a permission.'],
    [{ sources: ' , ' }, 'Enter a source, or * for all.'],
    [{ days: '0' }, 'Enter 1 to 90 days.'],
    [{ days: '91' }, 'Enter 1 to 90 days.'],
    [{ days: '1.5' }, 'Enter 1 to 90 days.'],
    [{ days: '' }, 'Enter 1 to 90 days.'],
  ] as const)('with %o needs: %s', ([changes, problem]) => {
    expect(tokenProblem({ ...FORM, ...changes })).toBe(problem)
  })

  test('can only have permissions of its owner', () => {
    const grants = [
      { actions: ['replay' as const, 'view' as const], sources: ['orders'] },
      { actions: ['view' as const], sources: ['*'] },
    ]
    expect(ownActions({ grants })).toEqual(['view', 'replay'])
    expect(ownActions({ grants: [{ actions: [...ACTIONS], sources: ['*'] }] })).toEqual(ACTIONS)
    expect(namesIn(' a, b  c,')).toEqual(['a', 'b', 'c'])
  })

  test('is marked in the week before it expires', () => {
    const day = 86_400_000
    expect(expiresSoon({ expiresAt: 6 * day }, 0)).toBe(true)
    expect(expiresSoon({ expiresAt: 8 * day }, 0)).toBe(false)
  })
})

test('people have their sessions and tokens, the latest request first', () => {
  const session = (id: string, person: string, lastUsedAt: number) =>
    ({ id, person, name: `Name of ${person}`, createdAt: 0, lastUsedAt }) as Session
  const token = (id: string, person: string, lastUsedAt?: number) =>
    ({ id, person, lastUsedAt }) as Token
  const people = peopleOf(
    [session('s1', 'ada', 5), session('s2', 'ada', 9)],
    [token('t1', 'ben'), token('t2', 'chen', 20), token('t3', 'ada', 7)],
  )
  expect(
    people.map(({ id, name, sessions, tokens, lastUsedAt }) =>
      [id, name, sessions.length, tokens.length, lastUsedAt].join(' '),
    ),
  ).toEqual(['chen  0 1 20', 'ada Name of ada 2 1 9', 'ben  0 1 '])
})

describe('a fingerprint rule', () => {
  const draft = { text: 'lock *', code: '55P03', class: 'transient', group: 'locks' }

  test('is made from a form', () => {
    expect(ruleOf(draft)).toEqual({
      rule: {
        name: 'locks',
        match: { class: 'transient', text: 'lock *', code: '55P03' },
        group: 'locks',
      },
    })
    expect(ruleOf({ ...draft, name: 'Locks', source: 'orders' })).toMatchObject({
      rule: { name: 'Locks', source: 'orders' },
    })
    expect(ruleOf({ group: 'locks', class: 'nothing' })).toEqual({
      problem: 'Enter at least one condition.',
    })
    expect(ruleOf({ code: 'x', group: ' ' })).toEqual({ problem: 'Enter the name of the group.' })
  })

  test('is a sentence, and a line of the config', () => {
    const rule = { name: 'a', source: 'orders', match: { code: '1', text: 'x' }, group: 'g' }
    expect(matchText(rule)).toBe('source is orders and code is 1 and message contains "x"')
    expect(JSON.parse(configText(rule).slice(2))).toEqual(rule)
  })

  test('is tried before the others, because the first match decides', () => {
    const rule = (name: string, group: string) => ({ name, match: { code: '1' }, group })
    expect(
      withDraft([rule('a', '1'), rule('b', '2')], rule('b', '3')).map(
        ({ name, group }) => name + group,
      ),
    ).toEqual(['b3', 'a1'])
  })
})

test('masks are rows by source', () => {
  const rows = maskRows([
    { source: 'payments', paths: [], headers: ['x-customer'] },
    { source: 'orders', paths: [{ pointer: '/card', isOptional: true }], headers: [] },
  ])
  expect(
    rows.map(({ source, what, isHeader, isOptional }) => [source, what, isHeader, isOptional]),
  ).toEqual([
    ['orders', '/card', false, true],
    ['payments', 'x-customer', true, false],
  ])
})
