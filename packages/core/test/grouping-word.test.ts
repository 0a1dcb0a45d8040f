import { describe, expect, test } from 'vitest'
import { cached, wordOf } from '../src/grouping/word.ts'

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

describe('the cache of words', () => {
  /** Returns a cached function, and the texts that it parsed. */
  function recorded() {
    const parsed: string[] = []
    const read = cached((token) => {
      parsed.push(token)
      return { token }
    })
    return { parsed, read }
  }

  test('has each text once', () => {
    const { parsed, read } = recorded()
    expect([read('order'), read('late'), read('order')]).toEqual([
      { token: 'order' },
      { token: 'late' },
      { token: 'order' },
    ])
    expect(parsed).toEqual(['order', 'late'])
  })

  test('has texts of up to 24 characters', () => {
    const { parsed, read } = recorded()
    const [short, long] = ['x'.repeat(24), 'x'.repeat(25)]
    for (const token of [short, short, long, long]) read(token)
    expect(parsed).toEqual([short, long, long])
  })

  test('has 4000 texts, and starts again with the next one', () => {
    const { parsed, read } = recorded()
    for (let at = 0; at < 4000; at += 1) read(`word${at}`)
    read('word0')
    expect(parsed.length).toBe(4000)
    read('word4000')
    read('word0')
    read('word4000')
    expect(parsed.slice(4000)).toEqual(['word4000', 'word0'])
  })
})
