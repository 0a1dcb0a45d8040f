import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { fromQueryString, ROUTES, toQueryString } from '../src/index.ts'

/** As servers read an address: a name that is there several times is a list. */
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
  most: z.int().optional(),
  after: z.number().optional(),
  isOpen: z.boolean().optional(),
  kind: z.enum(['a', 'b']).optional(),
})

const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 })

describe('a query', () => {
  test('is the same after it was in an address, whatever is in it', () => {
    const query = fc.record(
      {
        names: fc.array(text, { minLength: 1, maxLength: 5 }),
        text,
        most: fc.integer(),
        after: fc.double({ noNaN: true, min: -1e15, max: 1e15 }).map((at) => Number(at.toFixed(3))),
        isOpen: fc.boolean(),
        kind: fc.constantFrom('a' as const, 'b' as const),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(query, (asked) => {
        const read = fromQueryString(schema, rawOf(toQueryString(asked)))
        const plain = Object.fromEntries(
          Object.entries(asked).map(([name, value]) => [name, Object.is(value, -0) ? 0 : value]),
        )
        expect(schema.parse(read)).toEqual(plain)
      }),
    )
  })

  test('with a text that looks like something else keeps it a text', () => {
    for (const value of ['1', 'true', 'null', '[]', '', ' 1']) {
      const read = fromQueryString(schema, { text: value })
      expect(read).toEqual({ text: value })
    }
  })

  test('that does not fit is left for the schema to refuse', () => {
    for (const raw of [
      { most: '1e3' },
      { most: '0x10' },
      { most: '' },
      { isOpen: 'yes' },
      { most: ['1', '2'] },
    ]) {
      const read = fromQueryString(schema, raw)
      expect(schema.safeParse(read).success).toBe(false)
    }
    expect(schema.strict().safeParse(fromQueryString(schema, { nmaes: 'a' })).success).toBe(false)
  })

  test('of every route can be read back', () => {
    const id = '01890000-0000-8000-8000-000000000001'
    const query = {
      groups: [id],
      after: 5,
      sources: ['a'],
      quarantined: true,
      json: ['/a=1', '/b="x=y"'],
    }
    const { query: known } = ROUTES.listDeadLetters
    expect(known.parse(fromQueryString(known, rawOf(toQueryString(query))))).toEqual(query)
  })

  test('without anything in it adds nothing to an address', () => {
    expect(toQueryString({})).toBe('')
    expect(toQueryString({ text: undefined, names: [] })).toBe('')
  })
})
