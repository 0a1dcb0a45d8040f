import { describe, expect, test } from 'vitest'
import { attempt, isA, read, readItems, readPath, readString } from '../src/classify/read.ts'

function revoked(target: object): unknown {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

describe('reading a value of any kind', () => {
  test('returns undefined when nothing can be read', () => {
    for (const value of [null, undefined, revoked({})]) {
      expect(read(value, 'a')).toBeUndefined()
      expect(readPath(value, ['a', 'b'])).toBeUndefined()
      expect(readString(value, 'a')).toBeUndefined()
    }
  })

  test('returns existing values', () => {
    expect(read({ a: 1 }, 'a')).toBe(1)
    expect(readPath({ a: { b: 2 } }, ['a', 'b'])).toBe(2)
    expect(readString({ a: 'x' }, 'a')).toBe('x')
    expect(readString({ a: 1 }, 'a')).toBeUndefined()
  })

  test('returns the first items of a list, and none of anything else', () => {
    expect(readItems([1, 2, 3], 2)).toEqual([1, 2])
    expect(readItems([1], 2)).toEqual([1])
    expect(readItems('12', 2)).toEqual([])
    expect(readItems(revoked([1]), 2)).toEqual([])
  })

  test('checks a class without trusting the value', () => {
    expect(isA(new RangeError('x'), Error)).toBe(true)
    expect(isA({}, Error)).toBe(false)
    expect(isA(revoked({}), Error)).toBe(false)
  })

  test('returns undefined when the read throws', () => {
    expect(attempt(() => 1)).toBe(1)
    expect(
      attempt(() => {
        throw new Error('no')
      }),
    ).toBeUndefined()
  })
})
