import { describe, expect, test } from 'vitest'
import {
  type DeadLetterFilter,
  FILTER_FIELDS,
  FilterError,
  filterWords,
  formatFilterWord,
  isBoundedFilter,
  parseFilter,
} from '../src/filter.ts'

const NOW = Date.UTC(2026, 10, 18, 12)
const HOUR = 3_600_000

function problemOf(text: string): FilterError {
  try {
    parseFilter(text, NOW)
  } catch (error) {
    if (error instanceof FilterError) return error
    throw error
  }
  throw new Error(`"${text}" was accepted.`)
}

describe('a filter', () => {
  test.each<[string, DeadLetterFilter]>([
    ['', {}],
    ['  \n ', {}],
    [
      'source:orders class:transient code:ECONNREFUSED after:2h attempts:5.. key:4711 header:x-tenant=acme json:/order/id=4711 "eu-bank"',
      {
        sources: ['orders'],
        class: 'transient',
        code: 'ECONNREFUSED',
        after: NOW - 2 * HOUR,
        attempts: { from: 5 },
        key: '4711',
        headers: { 'x-tenant': 'acme' },
        json: { '/order/id': 4711 },
        texts: ['eu-bank'],
      },
    ],
    ['eu bank', { texts: ['eu', 'bank'] }],
    ['"eu bank" text:"no rate" text:eu', { texts: ['eu bank', 'no rate', 'eu'] }],
    ['"key: 4711"', { texts: ['key: 4711'] }],
    [String.raw`"say \"no\" \\ c:\temp"`, { texts: [String.raw`say "no" \ c:\temp`] }],
    ['source:a source:b source:a', { sources: ['a', 'b'] }],
    ['source:"my queue" lane:a:b', { sources: ['my queue'], lane: 'a:b' }],
    ['status:open status:discarded', { statuses: ['open', 'discarded'] }],
    ['handler:charge type:order.placed', { handler: 'charge', type: 'order.placed' }],
    ['message-id:7f quarantined:no', { messageId: '7f', quarantined: false }],
    ['attempts:3', { attempts: { from: 3, to: 3 } }],
    ['attempts:..3', { attempts: { to: 3 } }],
    ['attempts:3..5', { attempts: { from: 3, to: 5 } }],
    ['after:0 before:1.5d', { after: 0, before: NOW - 36 * HOUR }],
    ['after:2026-01-31', { after: Date.UTC(2026, 0, 31) }],
    ['after:2026-01-31T10:00', { after: Date.UTC(2026, 0, 31, 10) }],
    ['before:2026-01-31T10:00:00+02:00', { before: Date.UTC(2026, 0, 31, 8) }],
    [
      'first-after:7d first-before:90m',
      { firstAfter: NOW - 168 * HOUR, firstBefore: NOW - 1.5 * HOUR },
    ],
    [
      'header:a=b=c header:"b=x y" header:c="x y" header:d=',
      { headers: { a: 'b=c', b: 'x y', c: 'x y', d: '' } },
    ],
    [
      'json:/a=1 json:/b="1" json:/c=true json:/d=null json:/e=open json:/f="" json:/g=[1]',
      { json: { '/a': 1, '/b': '1', '/c': true, '/d': null, '/e': 'open', '/f': '', '/g': '[1]' } },
    ],
    ['json:/a=1e400', { json: { '/a': '1e400' } }],
    ['extracted:order=4711', { extracted: { order: '4711' } }],
    [
      'group:0190163D-8694-739b-aea5-966c26f8ad91',
      { groups: ['0190163d-8694-739b-aea5-966c26f8ad91'] },
    ],
  ])('%j is read', (text, filter) => {
    expect(parseFilter(text, NOW)).toEqual(filter)
  })

  test('has a name such as "__proto__" as an ordinary name', () => {
    const { headers } = parseFilter('header:__proto__=x header:b=y', NOW)
    expect(Object.entries(headers ?? {})).toEqual([
      ['__proto__', 'x'],
      ['b', 'y'],
    ])
    expect(JSON.stringify(headers)).toBe('{"__proto__":"x","b":"y"}')
  })

  test.each<[string, number, ...string[]]>([
    ['class:transient sorce:orders', 16, 'Unknown field "sorce"', '"source", as in source:orders'],
    ['Key:4711', 0, 'Did you mean "key"'],
    ['quar:yes', 0, 'Did you mean "quarantined"'],
    [
      '10.0.0.1:5432',
      0,
      'Unknown field "10.0.0.1"',
      'Fields: source, group',
      'use quotes: "10.0.0.1:5432"',
    ],
    ['a "eu bank', 2, 'Expected a closing quote'],
    ['source:', 7, '"source" expects 1 to 512 characters, as in source:orders'],
    ['""', 0, '"text" expects 1 to 512 characters'],
    ['key:a key:b', 6, '"key" can be used once'],
    [
      Array.from({ length: 9 }, (_, at) => `w${at}`).join(' '),
      24,
      '"text" can be used at most 8 times',
    ],
    ['class:slow', 6, 'one of transient, schema, business, integration, unknown'],
    ['quarantined:true', 12, 'yes or no'],
    ['after:yesterday', 6, 'how long ago (2h)', 'after:2h'],
    ['after:2026-13-01', 6, 'how long ago'],
    ['attempts:5..3', 9, '5, 5.., ..5 or 3..5'],
    ['attempts:..', 9, '5, 5.., ..5 or 3..5'],
    ['attempts:9999999999', 9, '5, 5.., ..5 or 3..5'],
    ['group:a5db', 6, 'a full id'],
    ['header:x-tenant', 7, 'name=value, as in header:x-tenant=acme'],
    ['header:a=1 header:a=2', 11, '"header" has two values for "a"'],
    ['json:order=1', 5, '/pointer=value'],
    ['json:/a~2=1', 5, '/pointer=value'],
  ])('%j is rejected with its position and the correct form', (text, position, ...reasons) => {
    const { message, ...error } = problemOf(text)
    expect(error.position).toBe(position)
    for (const reason of reasons) expect(message).toContain(reason)
    const [quoted, mark] = message.split('\n').slice(-2)
    expect(quoted).toBe(`  ${text}`)
    expect(mark).toBe(`${' '.repeat(position + 2)}^`)
  })

  test('is the same after its words are written again', () => {
    const values = ['a', 'a b', 'say "no"', String.raw`c:\temp`, 'x:y', '', 'ä\u0000b']
    for (const field of [undefined, 'key', 'header']) {
      for (const value of values) {
        expect(filterWords(formatFilterWord(field, value))).toMatchObject([{ field, value }])
      }
    }
  })

  test('never fails in another way than with a FilterError', () => {
    const parts = [
      'source:',
      'json:/',
      '"',
      '\\',
      ' ',
      '=',
      '..',
      'after:',
      '\0',
      '\ud800',
      'é',
      ':',
      'header:a=',
    ]
    for (let seed = 0; seed < 3_000; seed += 1) {
      const text = Array.from(
        { length: 6 },
        (_, at) => parts[(seed * 7 + at * at * 31 + (seed >> at)) % parts.length],
      ).join('')
      const thrown = thrownBy(() => parseFilter(text, NOW))
      expect(thrown === undefined || thrown instanceof FilterError).toBe(true)
    }
  })

  test('is bounded by a group, a value with an index or a start time', () => {
    for (const { example, isBound = false } of FILTER_FIELDS) {
      expect(isBoundedFilter(parseFilter(example, NOW))).toBe(isBound)
    }
  })
})

/** Returns what the work throws, or undefined. */
function thrownBy(work: () => unknown): unknown {
  try {
    work()
    return undefined
  } catch (error) {
    return error
  }
}
