import { describe, expect, test } from 'vitest'
import type { MessageRow } from '../src/data/messages.ts'
import { bytesOf, hexLines, textOfBytes } from '../src/words/bytes.ts'
import { wordTexts } from '../src/words/filter-words.ts'
import { failureTitle, foldFailures } from '../src/words/history.ts'
import { jsonLines, maskedCount, parseExact } from '../src/words/json-lines.ts'
import { parseColumns, toggledColumns } from '../src/words/message-columns.ts'
import { frozenFilter, messageFilter } from '../src/words/message-filter.ts'
import { currentRows } from '../src/words/message-rows.ts'
import { messageSentence, reasonText } from '../src/words/message-sentence.ts'

const NOW = Date.UTC(2026, 10, 18, 3, 4)

describe('the filter of messages', () => {
  test('gets the range only if it has no bound', () => {
    expect(messageFilter('class:schema', '7d', NOW)).toEqual({
      filter: 'class:schema after:7d',
      isRanged: true,
    })
    expect(messageFilter('', '24h', NOW)).toEqual({ filter: 'after:24h', isRanged: true })
    expect(messageFilter('key:4711', '24h', NOW)).toEqual({ filter: 'key:4711', isRanged: false })
    expect(messageFilter('after:2h', '24h', NOW)).toEqual({ filter: 'after:2h', isRanged: false })
  })
  test('reports what is wrong with it', () => {
    const { filter, problem } = messageFilter('clas:schema', '24h', NOW)
    expect(filter).toBeUndefined()
    expect(problem).toMatch(/clas/)
  })
  test('keeps quotes, which make a value of the body a text', () => {
    expect(wordTexts('json:/id="4711"  "eu bank"').map(({ text }) => text)).toEqual([
      'json:/id="4711"',
      '"eu bank"',
    ])
  })
  test('is frozen at a time, unless the user chose an earlier end', () => {
    const after = 'after:2026-11-17T03:04:00.000Z'
    expect(frozenFilter('json:/id="4711" after:24h', NOW)).toBe(
      `json:/id="4711" ${after} before:2026-11-18T03:04:00.000Z`,
    )
    expect(frozenFilter('after:24h before:2h', NOW)).toBe(
      `${after} before:2026-11-18T01:04:00.000Z`,
    )
    expect(frozenFilter('after:24h before:2030-01-01', NOW)).toBe(
      `${after} before:2026-11-18T03:04:00.000Z`,
    )
  })
})

describe('the columns of messages', () => {
  test('are read from the address, without unknown ones', () => {
    expect(parseColumns('status,colour,header:x-tenant,header:')).toEqual([
      'status',
      'header:x-tenant',
    ])
    expect(parseColumns(undefined)).toContain('what')
    expect(parseColumns(',')).toContain('what')
  })
  test('keep their order, and the default needs no text', () => {
    expect(toggledColumns(['status', 'failed'], 'code')).toBe('status,code,failed')
    expect(toggledColumns(['status', 'failed'], 'header:x-tenant')).toBe(
      'status,header:x-tenant,failed',
    )
    const without = parseColumns(toggledColumns(parseColumns(undefined), 'size'))
    expect(toggledColumns(without, 'size')).toBe('')
  })
})

const row = (id: string, lastFailedAt: number, status: MessageRow['status'] = 'open') =>
  ({ id, lastFailedAt, status }) as MessageRow

describe('a list of messages', () => {
  const loaded = [row('c', 3), row('b', 2), row('a', 1)]
  test('counts newer messages and does not insert them', () => {
    const newest = { rows: [row('e', 5), row('d', 4), row('c', 3)], isAll: false }
    expect(currentRows(loaded, newest)).toEqual({ rows: loaded, added: 2 })
  })
  test('shows the newest status, and drops rows that no longer match', () => {
    const newest = { rows: [row('c', 3, 'replaying'), row('a', 1)], isAll: false }
    expect(currentRows(loaded, newest).rows).toEqual([row('c', 3, 'replaying'), row('a', 1)])
  })
  test('keeps older rows unless the newest ones are all', () => {
    const rows = [row('c', 3), row('b', 2)]
    expect(currentRows(loaded, { rows, isAll: false }).rows).toEqual(loaded)
    expect(currentRows(loaded, { rows, isAll: true }).rows).toEqual(rows)
    expect(currentRows(loaded, { rows: [], isAll: true }).rows).toEqual([])
    // A search that ended early has found nothing yet.
    expect(currentRows(loaded, { rows: [], isAll: false }).rows).toEqual(loaded)
  })
  test('does not count an older message that is not loaded yet', () => {
    const newest = { rows: [row('b', 2), row('z', 0)], isAll: false }
    expect(currentRows(loaded, newest).added).toBe(0)
  })
})

const failure = (number: number, message: string) => ({
  ...{ number, at: number * 1_000, waitedMs: 0, class: 'transient' as const, signature: message },
  ...{ message, counted: true },
})

test('equal failures in a row are one entry of the history', () => {
  const history = [failure(1, 'a'), failure(2, 'b'), failure(3, 'b'), failure(4, 'b')]
  expect(foldFailures(history).map(failureTitle)).toEqual([
    'Runs 2–4 failed with the same error',
    'Run 1 failed',
  ])
})

describe('a body', () => {
  test('is lines with masked values', () => {
    const lines = jsonLines({ id: 1, card: { number: '***' }, tags: [], ok: null })
    const text = lines.map(
      ({ depth, tokens }) => '  '.repeat(depth) + tokens.map((one) => one.text).join(''),
    )
    expect(text.join('\n')).toBe(`{
  "id": 1,
  "card": {
    "number": masked
  },
  "tags": [],
  "ok": null
}`)
    expect(maskedCount(lines)).toBe(1)
  })
  test('marks a number whose digits the browser has lost', () => {
    expect(jsonLines(JSON.parse('12345678901234567890'))[0]?.tokens[0]?.kind).toBe('inexact')
  })
  test('keeps every digit when it is parsed from its text', () => {
    const parsed = parseExact('{"id":12345678901234567890,"price":1.10}')
    const text = jsonLines(parsed?.value).flatMap(({ tokens }) => tokens.map((one) => one.text))
    expect(text).toContain('12345678901234567890')
    expect(text).toContain('1.10')
    expect(parseExact('{')).toBeUndefined()
  })
  test('can be 5,000 levels deep', () => {
    const deep = JSON.parse(`${'['.repeat(5_000)}${']'.repeat(5_000)}`) as unknown
    expect(jsonLines(deep)).toHaveLength(201)
  })
  test('is shown as bytes', () => {
    expect(hexLines(bytesOf(btoa('{"a":1}\n')))).toEqual([
      { at: '000000', hex: '7b 22 61 22 3a 31 7d 0a                        ', text: '{"a":1}.' },
    ])
    const bytes = Uint8Array.from({ length: 40 }, (_, at) => at + 0x58)
    expect(hexLines(bytes, 20).map(({ at, text }) => [at, text])).toEqual([
      ['000000', 'XYZ[\\]^_`abcdefg'],
      ['000010', 'hijk'],
    ])
    expect(hexLines(Uint8Array.from([0, 127, 200]))[0]?.text).toBe('...')
    expect([...bytesOf('AP8=')]).toEqual([0, 255])
  })
  test('is text only if its bytes are UTF-8', () => {
    expect(textOfBytes(bytesOf('AP8='))).toBeUndefined()
    expect(textOfBytes(bytesOf('4pyT'))).toBe('✓')
  })
})

test('a message reads like a sentence', () => {
  const message = { source: 'payments', message: 'connect ECONNREFUSED' }
  expect(messageSentence({ ...message, class: 'schema', handler: 'ledger' })).toBe(
    'does not match the schema of ledger',
  )
  expect(messageSentence({ ...message, class: 'transient' })).toBe('failed: connect ECONNREFUSED')
  expect(reasonText('attempts_exhausted')).toBe('all attempts failed')
  expect(reasonText('rejected')).toBe('rejected')
})
