import { describe, expect, test } from 'vitest'
import { kindsOf } from '../src/classify/kinds.ts'
import { hasAny, namesOf } from '../src/classify/names.ts'

/** Returns the kinds of an error with these properties. */
function kindsWith(properties: object, code?: string): readonly string[] {
  const error = Object.assign(new Error('no'), properties)
  return kindsOf(error, namesOf(error), code)
}

const PROPERTIES = [
  ...['code', 'errorCode', 'error_code', 'reason', 'decline_code', 'declineCode', 'refusalReason'],
  ...['subcode', 'error_subcode', 'errorNum', 'responseCode', 'sqlState', 'constraint', 'column'],
  ...['param', 'field', 'keyword', 'rule', 'errorType'],
]

describe('the kinds of an error', () => {
  test.each(PROPERTIES)('include its %s', (key) => {
    expect(kindsWith({ [key]: 'closed' })).toEqual([`${key}: closed`])
  })

  test.each(['type', 'kind', 'category'])('include its %s if it looks like a code', (key) => {
    expect(kindsWith({ [key]: 'CARD_ERROR' })).toEqual([`${key}: CARD_ERROR`])
    expect(kindsWith({ [key]: 'Anna' })).toEqual([])
    expect(kindsWith({ [key]: {} })).toEqual([])
  })

  test('do not repeat its code', () => {
    expect(kindsWith({ code: 'E1', reason: 'closed' }, 'E1')).toEqual(['reason: closed'])
  })

  test.each<[unknown, readonly string[]]>([
    [550, ['responseCode: 550']],
    [5.5, []],
    [true, []],
    ['', []],
    ['a'.repeat(200), [`responseCode: ${'a'.repeat(200)}`]],
    ['a'.repeat(201), []],
  ])('are short texts and whole numbers: %j', (responseCode, expected) => {
    expect(kindsWith({ responseCode })).toEqual(expected)
  })

  test('are at most twelve', () => {
    const all = Object.fromEntries(PROPERTIES.map((key) => [key, 'closed']))
    expect(kindsWith(all)).toEqual(PROPERTIES.slice(0, 12).map((key) => `${key}: closed`))
  })

  test('are each listed once', () => {
    const body = { code: 'no_stock' }
    expect(kindsWith({ body, data: body })).toEqual(['code: no_stock'])
  })

  test('are those of errors only', () => {
    const thrown = Object.assign(() => undefined, { code: 'no_stock' })
    expect(kindsOf(thrown, namesOf(thrown), undefined)).toEqual([])
    expect(kindsOf('no_stock', namesOf('no_stock'), undefined)).toEqual([])
    expect(kindsOf(null, namesOf(null), undefined)).toEqual([])
  })
})

const STOCK = { code: 'no_stock' }

describe('the kinds of a body', () => {
  test.each([
    { response: { data: STOCK } },
    { response: { body: STOCK } },
    { response: STOCK },
    { responseBody: STOCK },
    { body: STOCK },
    { data: STOCK },
    { error: STOCK },
    { errors: [STOCK] },
    { details: STOCK },
    { raw: STOCK },
    { responseBody: ' {"code":"no_stock"}' },
  ])('are found in %j', (properties) => {
    expect(kindsWith(properties)).toEqual(['code: no_stock'])
  })

  test.each(['code', 'errorCode', 'error_code', 'reason', 'issue', 'field', 'param', 'path'])(
    'include each value of its %s',
    (key) => {
      expect(kindsWith({ body: { [key]: 'closed' } })).toEqual([`${key}: closed`])
    },
  )

  test.each(['type', 'status', 'name'])('include its %s if it looks like a code', (key) => {
    expect(kindsWith({ body: { [key]: 'CARD_ERROR' } })).toEqual([`${key}: CARD_ERROR`])
    expect(kindsWith({ body: { [key]: 'Anna' } })).toEqual([])
  })

  test.each(['error', 'title', 'message', 'detail', 'description', 'error_description'])(
    'include its %s if it is a message',
    (key) => {
      expect(kindsWith({ body: { [key]: 'order is blocked' } })).toEqual(['order is blocked'])
    },
  )

  test.each(['error', 'errors', 'details', 'issues', 'fault'])('are found in its %s', (key) => {
    expect(kindsWith({ body: { [key]: STOCK } })).toEqual(['code: no_stock'])
    expect(kindsWith({ body: { [key]: [STOCK] } })).toEqual(['code: no_stock'])
  })

  test('are found up to three levels below it', () => {
    const inObjects = { error: { error: { error: STOCK } } }
    const inLists = [[[STOCK]]]
    for (const body of [inObjects, inLists]) {
      expect(kindsWith({ body })).toEqual(['code: no_stock'])
      expect(kindsWith({ body: { error: body } })).toEqual([])
    }
  })

  test('are those of its first three items', () => {
    const body = [{ code: 'a_a' }, { code: 'b_b' }, { code: 'c_c' }, { code: 'd_d' }]
    expect(kindsWith({ body })).toEqual(['code: a_a', 'code: b_b', 'code: c_c'])
  })

  test('include a path without its numbers', () => {
    expect(kindsWith({ body: { path: ['lines', 3, 'price'] } })).toEqual(['path: lines/price'])
    const steps = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']
    expect(kindsWith({ body: { path: steps } })).toEqual(['path: a/b/c/d/e/f/g/h/i'])
  })

  test.each([null, 42, 'closed', 'at {"code":"no_stock"}', new Error('no'), {}])(
    'are none for %j',
    (body) => {
      expect(kindsWith({ body })).toEqual([])
    },
  )

  test('leave out the errors of an AggregateError, which are causes', () => {
    const errors = [Object.assign(new Error('no'), STOCK)]
    expect(kindsWith({ errors })).toEqual([])
  })
})

test('one of several names is enough', () => {
  const names = new Set(['code'])
  expect(hasAny(names, ['status', 'code'])).toBe(true)
  expect(hasAny(names, ['status'])).toBe(false)
})
