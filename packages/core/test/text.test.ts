import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { clip, detach, isRecord, shown } from '../src/text.ts'

describe('a clipped text', () => {
  test.each<[string, number, string]>([
    ['abc', 4, 'abc'],
    ['abc', 3, 'abc'],
    ['abc', 2, 'ab'],
    ['a😀b', 2, 'a'],
    ['a😀b', 3, 'a😀'],
    ['a\ud800\udc00', 2, 'a'],
    ['a\udbff\udfff', 2, 'a'],
    ['a\ud7ffx', 2, 'a\ud7ff'],
    ['a\udc00x', 2, 'a\udc00'],
    ['😀', 2, '😀'],
    ['a\ud800', 2, 'a\ud800'],
    ['', 0, ''],
  ])('%j at %s is %j', (text, bound, expected) => {
    expect(clip(text, bound)).toBe(expected)
  })
})

describe('a detached text', () => {
  test.each(['', ' ', 'a', ' a ', 'a\ud83d'])('%j stays the same', (text) => {
    expect(detach(text)).toBe(text)
  })
})

describe('a value formatted for a message', () => {
  test.each<[unknown, string]>([
    ['short', "'short'"],
    ['x'.repeat(40), `'${'x'.repeat(40)}'`],
    ['x'.repeat(41), `'${'x'.repeat(40)}…'`],
    [() => 1, 'a function'],
    [class {}, 'a function'],
    [[1], 'an array'],
    [{ a: 1 }, 'an object'],
    [Object.create(null), 'an object'],
    [null, 'null'],
    [undefined, 'undefined'],
    [3.5, '3.5'],
    [10n, '10'],
    [Symbol('s'), 'Symbol(s)'],
  ])('%s', (value, expected) => {
    expect(shown(value)).toBe(expected)
  })

  test('never throws and stays short for any value', () => {
    fc.assert(
      fc.property(fc.anything({ withBigInt: true, withNullPrototype: true }), (value) => {
        expect(typeof shown(value)).toBe('string')
      }),
    )
  })
})

describe('isRecord', () => {
  test.each<[unknown, boolean]>([
    [{}, true],
    [Object.create(null), true],
    [[], false],
    [null, false],
    [undefined, false],
    ['x', false],
    [() => 1, false],
  ])('%s: %s', (value, expected) => {
    expect(isRecord(value)).toBe(expected)
  })
})
