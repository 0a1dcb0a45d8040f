import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { hash64 } from '../src/hash.ts'

/** The definition in its simplest form. */
function fnv1a(bytes: Uint8Array): bigint {
  let hash = 0xcbf29ce484222325n
  for (const byte of bytes) hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n)
  return hash
}

function finalised(hash: bigint): string {
  const low = (hash & 0xffffffffn) ^ fmix32(hash >> 32n)
  const high = (hash >> 32n) ^ fmix32(low)
  return ((high << 32n) | low).toString(16).padStart(16, '0')
}

function fmix32(word: bigint): bigint {
  const once = BigInt.asUintN(32, (word ^ (word >> 16n)) * 0x85ebca6bn)
  const twice = BigInt.asUintN(32, (once ^ (once >> 13n)) * 0xc2b2ae35n)
  return twice ^ (twice >> 16n)
}

describe('hash64', () => {
  test('the definition it is compared with gives the published vectors', () => {
    expect(fnv1a(Buffer.from(''))).toBe(0xcbf29ce484222325n)
    expect(fnv1a(Buffer.from('a'))).toBe(0xaf63dc4c8601ec8cn)
    expect(fnv1a(Buffer.from('foobar'))).toBe(0x85944171f73967e8n)
  })

  test.each([
    ['', '2e553018f7658afe'],
    ['a', '3ae7dca965504b39'],
    ['foobar', '80eab2ed9fa19bd9'],
  ])('%j is %s, today and in every later version', (text, expected) => {
    expect(hash64(text)).toBe(expected)
  })

  test('is finalised FNV-1a over UTF-16LE for any text, lone surrogates included', () => {
    const units = fc.array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 50 })
    fc.assert(
      fc.property(units, fc.constantFrom('', '\ud800', 'plain', 'é', '😀'), (codes, tail) => {
        const text = String.fromCharCode(...codes) + tail
        expect(hash64(text)).toBe(finalised(fnv1a(Buffer.from(text, 'utf16le'))))
      }),
    )
  })

  test('20,000 texts that differ in a few digits do not collide', () => {
    const texts = Array.from({ length: 20_000 }, (_, index) => `order ${index} was not found`)
    expect(new Set(texts.map(hash64)).size).toBe(texts.length)
  })

  test('different texts differ', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (a, b) => {
        expect(hash64(a) === hash64(b)).toBe(a === b)
      }),
    )
  })

  test.each([
    ['first', 0],
    ['middle', 7],
    ['last', 14],
  ])('the %s digits spread evenly over 256 buckets', (_, at) => {
    const buckets = Array.from({ length: 256 }, () => 0)
    for (let index = 0; index < 12_800; index += 1) {
      const bucket = Number.parseInt(hash64(`key-${index}`).slice(at, at + 2), 16)
      buckets[bucket] = (buckets[bucket] ?? 0) + 1
    }
    // 50 expected in each. Chi-squared with 255 degrees of freedom passes 350 once in 20,000 times.
    const chiSquared = buckets.reduce((sum, count) => sum + (count - 50) ** 2 / 50, 0)
    expect(chiSquared).toBeLessThan(350)
  })

  test('one changed bit of the text changes about half of the bits of the hash', () => {
    const bits = Array.from({ length: 2000 }, (_, index) => {
      const [a, b] = [`key-${index}a`, `key-${index}c`].map((text) => BigInt(`0x${hash64(text)}`))
      return ((a ?? 0n) ^ (b ?? 0n)).toString(2).replaceAll('0', '').length
    })
    const average = bits.reduce((sum, count) => sum + count, 0) / bits.length
    expect(average).toBeGreaterThan(31)
    expect(average).toBeLessThan(33)
  })
})
