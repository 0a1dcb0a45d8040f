import type { Group } from '@redrive/api'
import { describe, expect, test } from 'vitest'
import { can, canSomewhere, personName, refusal, roleText } from '../src/data/permissions.ts'
import { itemsOf } from '../src/screens/groups/sections.ts'
import { apiText, quoted } from '../src/words/equivalents.ts'
import { parseGroupFilter, viewQuery } from '../src/words/group-filter.ts'
import { discardText, groupSentence } from '../src/words/group-sentence.ts'
import { mergeFacts } from '../src/words/merge.ts'

const NOW = Date.UTC(2026, 10, 18, 3, 4, 12)
const aGroup = (changes: Partial<Group> = {}) =>
  ({
    id: 'a',
    source: 'orders',
    class: 'transient',
    state: 'open',
    count: 38_112,
    openCount: 38_112,
    replayingCount: 0,
    firstSeenAt: NOW - 23 * 60_000,
    lastSeenAt: NOW - 6 * 60_000,
    ...changes,
  }) as Group
const plain = (text: string) => text.replaceAll('\u00a0', ' ')

describe('the filter of groups', () => {
  test('reads every key, several sources and free text', () => {
    expect(
      parseGroupFilter(
        'source:orders source:"eu bank" class:schema handler:billing owner:ada state:muted has:open regressed:yes ECONN refused',
      ),
    ).toEqual({
      query: {
        sources: ['orders', 'eu bank'],
        class: 'schema',
        handler: 'billing',
        owner: 'ada',
        states: ['muted'],
        hasOpen: true,
        regressed: true,
        text: 'ECONN refused',
      },
    })
  })

  test.for([
    ['clas:schema', /Unknown field "clas"\. Fields: source, class/],
    ['class:nothing', /"class" expects one of transient, schema/],
    ['source:', /"source" expects a value/],
    ['"open quote', /closing quote/],
  ] as const)('reports %s', ([filter, problem]) => {
    const parsed = parseGroupFilter(filter)
    expect('problem' in parsed ? parsed.problem : '').toMatch(problem)
  })

  test('a view selects by state, owner or regression', () => {
    expect(viewQuery('open', 'ada')).toEqual({ states: ['open'], hasOpen: true })
    expect(viewQuery('mine', 'ada')).toEqual({ owner: 'ada' })
  })
})

test.for([
  [{}, '38,112 messages since 02:41, none for the last 6 min. All are open.'],
  [
    { openCount: 858, replayingCount: 748, lastSeenAt: NOW - 20_000 },
    '38,112 messages since 02:41, the last one 20 s ago. 858 are open. 748 are in a run.',
  ],
  [{ count: 1, openCount: 1 }, '1 message since 02:41, none for the last 6 min. It is open.'],
  [{ openCount: 0 }, '38,112 messages since 02:41, none for the last 6 min. None is open.'],
] as const)('a group is a sentence: %o', ([changes, sentence]) => {
  expect(plain(groupSentence(aGroup(changes), NOW, 'utc'))).toBe(sentence)
})

test('sections keep the order and fold', () => {
  const groups = [aGroup(), aGroup({ id: 'b', source: 'payments' }), aGroup({ id: 'c' })]
  const short = (folded: string[]) =>
    itemsOf(groups, 'source', new Set(folded)).map((item) =>
      item.kind === 'section' ? `${item.name} ${item.groups.length}` : item.group.id,
    )
  expect(short([])).toEqual(['orders 2', 'a', 'c', 'payments 1', 'b'])
  expect(short(['orders'])).toEqual(['orders 2', 'payments 1', 'b'])
})

test('permissions follow the grants and their patterns', () => {
  const me = {
    via: 'session' as const,
    grants: [
      { actions: ['view' as const, 'replay' as const], sources: ['orders*'] },
      { actions: ['view' as const], sources: ['*'] },
    ],
  }
  expect([can(me, 'replay', 'orders-eu'), can(me, 'replay', 'payments')]).toEqual([true, false])
  expect(refusal(me, 'replay', 'payments')).toBe('Permission replay is required on payments.')
  expect([canSomewhere(me, 'replay'), canSomewhere(me, 'discard')]).toEqual([true, false])
  expect(roleText(me)).toBe('operator')
  expect(personName('https://id.example#ada')).toBe('ada')
})

test('a request of the API is a command that a shell can run', () => {
  expect(apiText('GET /api/v1/groups')).toBe(
    'curl -H "Authorization: Bearer $REDRIVE_TOKEN" "$REDRIVE_URL/api/v1/groups"',
  )
  expect(apiText('POST /api/v1/x', { note: "it's" })).toContain(`-d '{"note":"it'\\''s"}'`)
  expect(quoted('a')).toBe("'a'")
})

test('the comment of a discard counts its messages, with plain spaces', () => {
  expect(discardText(1, 'a test')).toBe('Discarded 1 message: a test')
  expect(discardText(1_200, 'a test')).toBe('Discarded 1,200 messages: a test')
})

describe('the facts before a merge', () => {
  const texts = (target: Group, ...others: readonly Group[]) =>
    mergeFacts(target, others).map(({ text, isWarning }) => `${isWarning ? '!' : ''}${text}`)
  const AFTER = [
    'Later failures of these groups join the merged group.',
    'To undo it, open the tab Grouping of the merged group. No message is changed or replayed.',
  ]

  test('name what is equal', () => {
    const billing = { code: 'E2', handler: 'billing' }
    expect(texts(aGroup(billing), aGroup({ id: 'b', ...billing }))).toEqual([
      'Same source, class, code and handler.',
      ...AFTER,
    ])
  })

  test('warn about what differs, and about the state that is lost', () => {
    const muted = aGroup({ id: 'b', state: 'muted', class: 'schema', code: 'E1' })
    expect(texts(aGroup(), muted)).toEqual([
      'Same source.',
      '!Different class and code.',
      '!1 group is not open. The merged group is open.',
      ...AFTER,
    ])
  })

  test('warn that open messages open a resolved group again', () => {
    expect(texts(aGroup({ state: 'resolved' }), aGroup({ id: 'b' }))).toContain(
      '!1 group is not open. The merged group is open.',
    )
  })
})
