import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { fromQueryString, toQueryString } from '../src/query-string.ts'
import { ROUTES } from '../src/routes.ts'

/** Parses a query string as servers do: a repeated name becomes a list. */
function rawOf(text: string): Record<string, string | string[]> {
  const params = new URLSearchParams(text)
  return Object.fromEntries(
    [...new Set(params.keys())].map((name) => {
      const all = params.getAll(name)
      return [name, all.length === 1 ? (all[0] ?? '') : all]
    }),
  )
}

const schema = z.object({
  names: z.array(z.string()).optional(),
  text: z.string().optional(),
  limit: z.int().optional(),
  after: z.number().optional(),
  isOpen: z.boolean().optional(),
  kind: z.enum(['a', 'b']).optional(),
})

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 })

describe('a query', () => {
  test('is unchanged after it is serialized and parsed', () => {
    const query = fc.record(
      {
        names: fc.array(text, { minLength: 1, maxLength: 5 }),
        text,
        limit: fc.integer(),
        after: fc.double({ noNaN: true, min: -1e15, max: 1e15 }).map((at) => Number(at.toFixed(3))),
        isOpen: fc.boolean(),
        kind: fc.constantFrom('a' as const, 'b' as const),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(query, (original) => {
        const read = fromQueryString(schema, rawOf(toQueryString(original)))
        const plain = Object.fromEntries(
          Object.entries(original).map(([name, value]) => [name, Object.is(value, -0) ? 0 : value]),
        )
        expect(schema.parse(read)).toEqual(plain)
      }),
    )
  })

  test('keeps a text that looks like another type', () => {
    for (const value of ['1', 'true', 'null', '[]', '', ' 1']) {
      const read = fromQueryString(schema, { text: value })
      expect(read).toEqual({ text: value })
    }
  })

  test('keeps an invalid value, so that the schema rejects it', () => {
    for (const raw of [
      { limit: '1e3' },
      { limit: '0x10' },
      { limit: '' },
      { isOpen: 'yes' },
      { limit: ['1', '2'] },
    ]) {
      const read = fromQueryString(schema, raw)
      expect(schema.safeParse(read).success).toBe(false)
    }
    expect(schema.strict().safeParse(fromQueryString(schema, { nmaes: 'a' })).success).toBe(false)
  })

  test('of a route can be parsed', () => {
    const id = '01890000-0000-8000-8000-000000000001'
    const query = {
      states: ['open', 'muted'],
      sources: ['a=b'],
      regressed: true,
      text: id,
      limit: 5,
    }
    const { query: known } = ROUTES.listGroups
    expect(known.parse(fromQueryString(known, rawOf(toQueryString(query))))).toEqual(query)
  })

  test('without values is an empty text', () => {
    expect(toQueryString({})).toBe('')
    expect(toQueryString({ text: undefined, names: [] })).toBe('')
  })
})
