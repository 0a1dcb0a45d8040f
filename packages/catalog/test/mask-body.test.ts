import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Mask, maskBody, resolveMask, type ResolvedMask } from '@redrive/catalog'

const masksOf = (...masks: readonly (string | Mask)[]) =>
  masks.map((mask) => resolveMask(mask) as ResolvedMask)

const masked = (body: unknown, ...masks: readonly (string | Mask)[]) =>
  maskBody(body, masksOf(...masks))

describe('a mask', () => {
  test.each([
    ['its place', { card: { number: 1, name: 'a' } }, { card: { number: '***', name: 'a' } }],
    ['another case', { Card: { NUMBER: 1 } }, { Card: { NUMBER: '***' } }],
    [
      'each item of a list',
      [{ card: { number: 1 } }, { a: 1 }],
      [{ card: { number: '***' } }, { a: 1 }],
    ],
    [
      'a list inside',
      { card: [{ number: 1 }, { number: 2 }] },
      { card: [{ number: '***' }, { number: '***' }] },
    ],
    ['an object as its value', { card: { number: { a: 1 } } }, { card: { number: '***' } }],
    ['JSON in a text', { card: '{"number":1,"x":2}' }, { card: '{"number":"***","x":2}' }],
    ['a body that is JSON in a text', '{"card":{"number":1}}', '{"card":{"number":"***"}}'],
    [
      'JSON in JSON in a text',
      JSON.stringify(JSON.stringify({ card: { number: 1 } })),
      JSON.stringify(JSON.stringify({ card: { number: '***' } })),
    ],
    ['a value that is masked already', { card: '***' }, { card: '***' }],
  ])('matches %s', (_, body, expected) => {
    expect(masked(body, '/card/number')).toEqual({ value: expected, unmatched: undefined })
  })

  test.each([
    ['an object without it', { order: 1 }],
    ['an empty list', []],
    ['a number', 4],
    ['null', null],
    ['a text', 'card number 1'],
    ['a value below another one', { payment: { card: { number: 1 } } }],
  ])('finds nothing in %s, so that the body is hidden', (_, body) => {
    expect(masked(body, '/card/number').unmatched).toBe('/card/number')
    expect(masked(body, { pointer: '/card/number', optional: true }).unmatched).toBeUndefined()
  })

  test('hides a text with JSON of too many levels, which it cannot read', () => {
    const deep = `${'['.repeat(65)}1${']'.repeat(65)}`
    expect(masked({ card: deep }, '/card/number')).toEqual({
      value: { card: '***' },
      unmatched: undefined,
    })
  })

  test('counts as found below a value that another mask hides', () => {
    expect(masked({ card: { number: 1 } }, '/card', '/card/number').unmatched).toBeUndefined()
    expect(masked({ card: { number: 1 } }, '/card/number', '/pin').unmatched).toBe('/pin')
  })

  test.each([
    ['an object', { card: { nr: 1 }, nr: 2 }, ['/card', '/card/number']],
    ['an item', { items: [{ code: 1 }, { a: 2 }] }, ['/items/1', '/items/*/pin']],
    ['a text', { card: 'x' }, ['/card', '/card/number']],
  ])('finds nothing in %s that another mask hides', (_, body, masks) => {
    expect(masked(body, ...masks).unmatched).toBe(masks[1])
  })

  test('counts as found in a value that was hidden before', () => {
    expect(masked({ card: '***' }, '/card', '/card/number').unmatched).toBeUndefined()
  })

  test('with a position matches only this item', () => {
    expect(masked({ items: [1, 2] }, '/items/1')).toEqual({
      value: { items: [1, '***'] },
      unmatched: undefined,
    })
  })

  test('matches every text with JSON, not only the first', () => {
    const body = [{ card: '{"number":1}' }, { card: '{"number":2}' }, { Card: '{"number":3}' }]
    expect(JSON.stringify(masked(body, '/card/number').value)).not.toMatch(/[123]/)
  })

  test('hides a text that looks like JSON and cannot be read, because it may contain the value', () => {
    expect(masked({ card: '{"number":1,"x":"' }, '/card/number').value).toEqual({ card: '***' })
  })

  test('with a star matches below items, too', () => {
    const body = [{ card: { number: 1 } }, { number: 2 }]
    expect(masked(body, '/*/number').value).toEqual([
      { card: { number: '***' } },
      { number: '***' },
    ])
  })

  test('with a star matches every key and item', () => {
    expect(masked({ a: [{ pin: 1 }], b: { pin: 2 } }, '/*/pin').value).toEqual({
      a: [{ pin: '***' }],
      b: { pin: '***' },
    })
  })
})

test('the other texts, names and numbers go through a function', () => {
  const text = (value: string) => value.replaceAll('7', '_')
  const body = { '7': '17', n: 70, deep: [{ a7: 'x', a_: 'y' }] }
  expect(maskBody(body, [], text).value).toEqual({
    _: '1_',
    n: '_0',
    deep: [{ a_: 'x', 'a_ (2)': 'y' }],
  })
})

test('no secret remains in 2,000 random bodies that contain it at the masked place', () => {
  const SECRET = '4111-secret'
  const name = fc.constantFrom('card', 'Card', 'CARD')
  const number = fc.constantFrom('number', 'Number')
  const wrap = fc.constantFrom<((value: unknown) => unknown)[]>(
    (value) => value,
    (value) => [value],
    (value) => [{ other: 1 }, value],
    (value) => JSON.stringify(value),
    (value) => JSON.stringify([value]),
  )
  fc.assert(
    fc.property(
      name,
      number,
      wrap,
      wrap,
      wrap,
      fc.json({ maxDepth: 3 }),
      (a, b, outer, inner, leaf, other) => {
        const rest = JSON.parse(other) as unknown
        const body = outer({ rest, [a]: inner({ [b]: leaf(SECRET), rest }) })
        const result = masked(body, '/card/number')
        expect(JSON.stringify(result.value)).not.toContain(SECRET)
        expect(result.unmatched).toBeUndefined()
      },
    ),
    { numRuns: 2_000 },
  )
})
