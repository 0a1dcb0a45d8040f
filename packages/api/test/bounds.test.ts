import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { ROUTES } from '../src/routes.ts'

type Schema = Readonly<Record<string, unknown>>

/** Returns the paths of all lists and texts of a schema without a largest length. */
function unbounded(schema: unknown, path: string): readonly string[] {
  if (Array.isArray(schema)) return schema.flatMap((one, at) => unbounded(one, `${path}/${at}`))
  if (typeof schema !== 'object' || schema === null) return []
  const { type, maxItems, maxLength, ...rest } = schema as Schema
  const isFixed = ['enum', 'const', 'format', 'pattern'].some((name) => name in rest)
  const isLongList = type === 'array' && maxItems === undefined
  const isLongText = type === 'string' && maxLength === undefined && !isFixed
  return [
    ...(isLongList || isLongText ? [path] : []),
    ...Object.entries(rest).flatMap(([name, one]) => unbounded(one, `${path}/${name}`)),
  ]
}

/** The largest size of a request bounds them. */
const BY_THE_BODY = ['body/properties/schema/propertyNames']

describe('every list and text of a request has a largest length', () => {
  test.each(Object.entries(ROUTES))('%s', (_, route: Schema) => {
    const found = ['params', 'query', 'body'].flatMap((part) => {
      const schema = route[part]
      return schema instanceof z.ZodType
        ? unbounded(z.toJSONSchema(schema, { unrepresentable: 'any', io: 'input' }), part)
        : []
    })
    expect(found.filter((path) => !BY_THE_BODY.includes(path))).toEqual([])
  })
})
