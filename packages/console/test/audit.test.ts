import type { AuditEntry } from '@redrive/api'
import { describe, expect, test } from 'vitest'
import { canEverywhere } from '../src/data/permissions.ts'
import {
  auditRows,
  operationName,
  parseAudit,
  subjectPath,
  subjectText,
  viaText,
} from '../src/words/audit.ts'

const ID = '0190163d-8694-739b-aea5-966c26f8ad91'
const anEntry = (sequence: number, changes: Partial<AuditEntry> = {}): AuditEntry => ({
  ...{ sequence, at: sequence, person: 'ada', via: 'session', operation: 'approveReplay' },
  ...{ outcome: 'done', facts: {}, previous: '', hash: '', ...changes },
})
const short = (entries: readonly AuditEntry[]) =>
  auditRows(entries).map(({ entry, requested, hasNoResult }) =>
    [entry.sequence, entry.outcome, requested?.sequence, hasNoResult].join(' '),
  )

describe('an action and its result', () => {
  test('are one row, by the id of the request', () => {
    const one = { request: 'a' }
    const other = { request: 'b' }
    expect(
      short([
        anEntry(5, { facts: other }),
        anEntry(4, { facts: one, outcome: 'refused' }),
        anEntry(3, { facts: other, outcome: 'requested' }),
        anEntry(2, { facts: one, outcome: 'requested' }),
        anEntry(1, { facts: one, operation: 'getPayload', outcome: 'viewed' }),
      ]),
    ).toEqual(['5 done 3 false', '4 refused 2 false', '1 viewed  false'])
  })

  test('without a result are marked, also when the same person repeats the action', () => {
    expect(
      short([
        anEntry(4),
        anEntry(3, { outcome: 'requested' }),
        anEntry(2, { outcome: 'requested' }),
        anEntry(1, { outcome: 'denied' }),
      ]),
    ).toEqual(['4 done 3 false', '2 requested  true', '1 denied  false'])
  })
})

test('an entry is readable', () => {
  expect(operationName('approveReplay')).toBe('Approve replay')
  expect(operationName('getPayload')).toBe('Reveal body')
  expect(viaText(anEntry(1, { via: 'token', facts: { isAgent: true } }))).toBe('token, agent')
  expect(subjectText(anEntry(1, { subject: ID }))).toBe('26f8ad91')
  expect(subjectText(anEntry(1, { facts: { ids: [1, 2] } })).replace('\u00a0', ' ')).toBe(
    '2 messages',
  )
  expect(subjectText(anEntry(1, { facts: { filter: 'source:orders' } }))).toBe('source:orders')
  expect(subjectText(anEntry(1))).toBe('')
  const denied = anEntry(1, { outcome: 'denied', facts: { action: 'replay' }, subject: ID })
  expect(subjectText(denied)).toBe('needs replay')
})

test.for([
  ['changeGroup', `/groups/${ID}`],
  ['mergeGroups', `/groups/${ID}`],
  ['approveReplay', `/replays/${ID}`],
  ['planReplay', `/replays/${ID}`],
  ['getPayload', `/messages/${ID}`],
  ['getSetAsidePayload', `/sources/set-aside?entry=${ID}`],
  ['approveSetAside', `/sources/set-aside?entry=${ID}`],
  ['revokeToken', undefined],
] as const)('the subject of %s has the page %s', ([operation, path]) => {
  expect(subjectPath(anEntry(1, { operation, subject: ID }))).toBe(path)
  // Only an id can be a part of an address.
  expect(subjectPath(anEntry(1, { operation, subject: '../orders' }))).toBeUndefined()
})

test('the filter has one value for each field', () => {
  expect(parseAudit('person:"https://id.example#ada" source:orders')).toEqual({
    query: { person: 'https://id.example#ada', source: 'orders' },
  })
  const problem = (filter: string) => {
    const parsed = parseAudit(filter)
    return 'problem' in parsed ? parsed.problem : ''
  }
  expect(problem('source:a source:b')).toBe('"source" can have one value only.')
  expect(problem('words')).toMatch(/fields person, source, operation, subject/)
  expect(problem('outcome:done')).toMatch(/fields person, source/)
})

test('only a grant on all sources is one everywhere', () => {
  const grants = (...sources: string[]) => ({
    grants: [{ actions: ['configure' as const], sources }],
  })
  expect(canEverywhere(grants('*'), 'configure')).toBe(true)
  expect(canEverywhere(grants('orders*'), 'configure')).toBe(false)
  expect(canEverywhere(grants('*'), 'view')).toBe(false)
})
