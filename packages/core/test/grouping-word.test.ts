import { describe, expect, test } from 'vitest'
import { wordOf } from '../src/grouping/word.ts'

describe('a word and its punctuation', () => {
  test.each([
    ['order', '', 'order', ''],
    ['(order),', '(', 'order', '),'],
    ['"price":', '"', 'price', '":'],
    ['total.', '', 'total', '.'],
    // An `undefined` in the message is a word as any other.
    ['undefined.', '', 'undefined', '.'],
    ['items[0]', '', 'items[0]', ''],
    ['items[0].', '', 'items[0]', '.'],
    ['save()', '', 'save()', ''],
    ['order)', '', 'order', ')'],
    ['order]]', '', 'order', ']]'],
    ['<v>', '', '<v>', ''],
    ['(<v>).', '(', '<v>', ').'],
    ['"', '"', '', ''],
    ['((', '((', '', ''],
    ['', '', '', ''],
  ])('%j is %j, %j and %j', (token, before, core, after) => {
    expect(wordOf(token)).toMatchObject({ before, core, after })
  })
})

describe('the shape of a word', () => {
  test.each([
    ['order', 'word'],
    ['sofa', 'word'],
    ['read-only', 'word'],
    ['globex-eu', 'value'],
    ['order-service:<v>', 'kept'],
    ['Read-only', 'name'],
    ['Anna', 'name'],
    ['Order', 'title'],
    ['IBAN', 'kept'],
    ['SKU', 'kept'],
    ['CHF', 'name'],
    ['ENOENT', 'kept'],
    ['"price"', 'kept'],
    ['"Anna"', 'kept'],
    ['"<v>"', 'value'],
  ])('%j is %j', (token, shape) => {
    expect(wordOf(token).shape).toBe(shape)
  })

  test.each([
    ['"price"', true],
    ["'price'", true],
    ['(price)', false],
    ['"<v>"', false],
  ])('%j is quoted: %j', (token, isQuoted) => {
    expect(wordOf(token).isQuoted).toBe(isQuoted)
  })

  test('does not change when the shape of an equal word does', () => {
    wordOf('Schmidt').shape = 'value'
    const second = wordOf('Schmidt')
    expect(second.shape).toBe('name')
    second.shape = 'value'
    expect(wordOf('Schmidt').shape).toBe('name')
  })
})
