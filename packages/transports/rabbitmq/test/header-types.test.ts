import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { checkEncodable } from '../src/message/check-encodable.ts'
import { readHeaderTypes, withTypes } from '../src/message/header-types.ts'

interface Codec {
  readonly encodeTable: (buffer: Buffer, table: object, offset: number) => number
  readonly decodeFields: (fields: Buffer) => Readonly<Record<string, unknown>>
}

/** The encoding of amqplib, which it does not export. */
const require = createRequire(import.meta.url)
const { encodeTable, decodeFields } = require(
  join(dirname(require.resolve('amqplib')), 'lib/codec.js'),
) as Codec

/** Returns the encoded fields, without the length before them. */
function encoded(table: object): Buffer {
  const buffer = Buffer.alloc(65_536)
  return buffer.subarray(4, encodeTable(buffer, table, 0))
}

const number = (type: string, value: fc.Arbitrary<number | bigint>) =>
  value.map((one) => ({ '!': type, value: one }))

const { value } = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.string(),
    fc.boolean(),
    fc.constant(null),
    number('int8', fc.integer({ min: -128, max: 127 })),
    number('uint8', fc.integer({ min: 0, max: 255 })),
    number('int16', fc.integer({ min: -32_768, max: 32_767 })),
    number('uint16', fc.integer({ min: 0, max: 65_535 })),
    number('int32', fc.integer()),
    number('uint32', fc.integer({ min: 0, max: 4_294_967_295 })),
    number('int64', fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
    number('int64', fc.integer({ min: -9, max: 9 })),
    number('float', fc.float()),
    number('double', fc.double()),
    number('double', fc.integer()),
    number('timestamp', fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })),
    fc.uint8Array({ maxLength: 9 }).map((bytes) => Buffer.from(bytes)),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(fc.string({ maxLength: 9 }), tie('value'), { maxKeys: 4 }),
  ),
}))
/** amqplib uses `!` as its own mark, and loses a field named `__proto__`. */
const isPlain = (table: object) =>
  !/"(?:!|__proto__)":(?!"(?:u?int|float|double|timestamp))/.test(textOf(table))
const textOf = (table: object) =>
  JSON.stringify(table, (_, one: unknown) => (typeof one === 'bigint' ? String(one) : one))

describe('types of headers', () => {
  it('make a copy equal to the original, byte for byte', () => {
    const table = fc.dictionary(fc.string({ maxLength: 9 }), value, { maxKeys: 6 }).filter(isPlain)
    fc.assert(
      fc.property(table, (original) => {
        const bytes = encoded(original)
        const types = readHeaderTypes(bytes)
        const stored: unknown = types === undefined ? undefined : JSON.parse(JSON.stringify(types))
        const copy = withTypes(decodeFields(bytes), stored as typeof types)
        expect(() => checkEncodable(copy)).not.toThrow()
        expect(encoded(copy).toString('hex')).toBe(bytes.toString('hex'))
      }),
      { numRuns: 2_000 },
    )
  })

  it('are not needed for numbers whose type amqplib chooses itself', () => {
    const table = {
      byte: 1,
      short: 300,
      int: 70_000,
      long: 2 ** 40,
      double: 0.5,
      list: [1, { a: 2 }],
    }
    expect(readHeaderTypes(encoded(table))).toBeUndefined()
  })

  it('contain the exact value of a number that JavaScript cannot represent', () => {
    const table = { large: { '!': 'int64', value: 9_007_199_254_740_993n } }
    expect(readHeaderTypes(encoded(table))).toEqual({ large: 'int64:9007199254740993' })
  })

  it('are not applied to a value that is no longer a number', () => {
    expect(
      withTypes(
        { a: 'text', b: [1], c: { d: 1 } },
        { a: 'int64', b: { d: 'int64' }, c: ['int64'] },
      ),
    ).toEqual({
      a: 'text',
      b: [1],
      c: { d: 1 },
    })
  })

  it('with an exact value are not applied to another value', () => {
    expect(withTypes({ tenant: 7 }, { tenant: 'int64:9007199254740993' })).toEqual({ tenant: 7 })
    const moment = { '!': 'timestamp', value: 7 }
    expect(withTypes({ moment }, { moment: 'timestamp:18446744073709551615' })).toEqual({ moment })
  })

  it('are left out for bytes that are not a table', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const types = readHeaderTypes(Buffer.from(bytes))
        expect(types === undefined || Object.keys(types).length > 0).toBe(true)
      }),
      { numRuns: 2_000 },
    )
  })
})
