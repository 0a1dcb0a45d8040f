import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { bounded, only } from '../src/desk/facts.ts'

describe('facts of the audit', () => {
  test('are as they are, when they fit', () => {
    const facts = { ids: Array.from({ length: 1_000 }, () => 'x'.repeat(36)), note: 'why' }
    expect(bounded(facts)).toBe(facts)
  })

  test('that do not fit lose long lists and texts, and nothing else', () => {
    const ids = Array.from({ length: 2_000 }, (_, at) => `id ${at} ${'x'.repeat(36)}`)
    const note = 'y'.repeat(5_000)
    const ramp = [1, 10]
    const sha256 = (value: unknown) =>
      createHash('sha256').update(JSON.stringify(value)).digest('hex')
    expect(bounded({ selection: { ids, sources: ['orders'] }, ramp, note, rate: 5 })).toEqual({
      selection: { ids: { count: 2_000, sha256: sha256(ids) }, sources: ['orders'] },
      ramp,
      note: { characters: 5_002, sha256: sha256(note) },
      rate: 5,
    })
  })

  test('that are many and short are only counted', () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`name ${at}`, at]))
    const { length } = JSON.stringify(many)
    expect(bounded(many)).toEqual({ omitted: `${length} characters` })
  })

  test('name one thing when it is the only one', () => {
    expect([only(['a']), only(['a', 'b']), only([]), only(undefined)]).toEqual([
      'a',
      undefined,
      undefined,
      undefined,
    ])
  })
})
