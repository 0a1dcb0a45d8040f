import type { Output } from '@redrive/api'
import { describe, expect, test } from 'vitest'
import type { SetAsideMessage } from '../src/data/sources.ts'
import { actionsOf, isOwnRequest } from '../src/screens/sources/set-aside-actions.ts'
import { brokerText, bySeverity, expiredText, problemsOf } from '../src/words/sources.ts'
import { parseSetAside } from '../src/words/set-aside.ts'

type Source = Output<'listSources'>['sources'][number]
type Status = Source['state']['status']

const plain = (text: string) => text.replaceAll('\u00a0', ' ')
const aSource = (source: string, status: Status, open = 0) =>
  ({
    source,
    open,
    state: { status, problem: `Problem of ${source}.`, processes: [] },
  }) as unknown as Source

describe('sources', () => {
  test('with a problem are first, then those with the most open dead letters', () => {
    const sources = [
      aSource('a', 'connected', 3),
      aSource('b', 'connected', 5),
      aSource('c', 'not_checked', 9),
      aSource('d', 'missing_queue'),
      aSource('e', 'unreachable'),
    ]
    expect(bySeverity(sources).map(({ source }) => source)).toEqual(['e', 'd', 'c', 'b', 'a'])
  })

  test('that are not ingested are one problem each, and unchecked sources are one problem together', () => {
    const sources = [
      aSource('refunds', 'unreachable'),
      aSource('orders', 'connected'),
      ...['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((name) => aSource(name, 'not_checked')),
    ]
    expect(problemsOf(sources).map(({ tone, title }) => `${tone} ${plain(title)}`)).toEqual([
      'bad Ingest of refunds stopped.',
      'warn 7 sources are not checked: a, b, c, d, e, 2 more.',
    ])
    expect(problemsOf(sources)[0]?.detail).toBe('Problem of refunds.')
    expect(problemsOf([aSource('orders', 'connected')])).toEqual([])
    expect(
      problemsOf([aSource('a', 'not_checked'), aSource('b', 'not_checked')]).map(
        (one) => one.title,
      ),
    ).toEqual(['No source of 2 is checked.'])
  })

  test('expired dead letters are counted by status', () => {
    expect(expiredText({ open: 1200, put_back: 3, resolved: 0 })).toBe('1,200 open, 3 put back')
  })
})

const aMessage = (changes: Partial<SetAsideMessage> = {}) =>
  ({ source: 'orders', status: 'open', isComplete: true, ...changes }) as SetAsideMessage
const all = ['view', 'replay', 'approve', 'discard'] as const
const me = { person: 'ada', grants: [{ actions: [...all], sources: ['orders'] }] }
const labels = (message: SetAsideMessage) => actionsOf(message, me).map(({ label }) => label)

describe('actions on a set-aside message', () => {
  test('follow its status', () => {
    expect(labels(aMessage())).toEqual(['Request replay…', 'Discard…'])
    expect(labels(aMessage({ status: 'requested', requestedBy: 'ben' }))).toEqual([
      'Approve replay…',
      'Withdraw request…',
      'Discard…',
    ])
    expect(labels(aMessage({ status: 'discarded' }))).toEqual(['Reopen…'])
    expect(labels(aMessage({ status: 'replaying' }))).toEqual([])
    expect(labels(aMessage({ status: 'replayed' }))).toEqual([])
  })

  test('never contain the approval of an own request, nor the replay of a part', () => {
    const own = aMessage({ status: 'requested', requestedBy: 'ada' })
    expect(isOwnRequest(own, me)).toBe(true)
    expect(labels(own)).toEqual(['Withdraw request…', 'Discard…'])
    expect(labels(aMessage({ isComplete: false }))).toEqual(['Discard…'])
  })

  test('name the missing permission', () => {
    expect(actionsOf(aMessage({ source: 'payments' }), me).map(({ refusal }) => refusal)).toEqual([
      'Permission replay is required on payments.',
      'Permission discard is required on payments.',
    ])
  })
})

test('the filter of set-aside messages has two fields', () => {
  expect(parseSetAside('source:orders source:"eu bank" status:discarded')).toEqual({
    query: { sources: ['orders', 'eu bank'], statuses: ['discarded'] },
  })
  const problem = (filter: string) => {
    const parsed = parseSetAside(filter)
    return 'problem' in parsed ? parsed.problem : ''
  }
  expect(problem('status:gone')).toMatch(/expects one of open, requested/)
  expect(problem('text')).toMatch(/fields source and status/)
  expect(problem('reason:x')).toMatch(/fields source and status/)
  expect(problem('"open')).toMatch(/closing quote/)
})

test('the broker of a source has a name, also a broker that is newer than the console', () => {
  expect(brokerText({ broker: 'rabbitmq' })).toBe('RabbitMQ')
  expect(brokerText({ broker: 'pulsar' })).toBe('pulsar')
  expect(brokerText({})).toBeUndefined()
})
