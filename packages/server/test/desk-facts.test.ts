import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { bounded, only } from '../src/operations/audit-facts.ts'

describe('audit facts', () => {
  test('stay unchanged when they are small enough', () => {
    const facts = { ids: Array.from({ length: 1_000 }, () => 'x'.repeat(36)), note: 'why' }
    expect(bounded(facts)).toBe(facts)
  })

  test('replace long lists and texts by hashes when they are too large', () => {
    const ids = Array.from({ length: 2_000 }, (_, at) => `id ${at} ${'x'.repeat(36)}`)
    const note = 'y'.repeat(5_000)
    const canary = [1, 10]
    const sha256 = (value: unknown) =>
      createHash('sha256').update(JSON.stringify(value)).digest('hex')
    expect(bounded({ selection: { ids, sources: ['orders'] }, canary, note, rate: 5 })).toEqual({
      selection: { ids: { count: 2_000, sha256: sha256(ids) }, sources: ['orders'] },
      canary,
      note: { characters: 5_002, sha256: sha256(note) },
      rate: 5,
    })
  })

  test('are replaced by their size when there are too many short ones', () => {
    const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`name ${at}`, at]))
    const { length } = JSON.stringify(many)
    expect(bounded(many)).toEqual({ omitted: `${length} characters` })
  })

  test('contain a single item only when it is the only one', () => {
    expect([only(['a']), only(['a', 'b']), only([]), only(undefined)]).toEqual([
      'a',
      undefined,
      undefined,
      undefined,
    ])
  })
})
