import { describe, expect, test } from 'vitest'
import { foldBodies, kindOf, kindsOfText } from '../src/grouping/body.ts'

describe('a folded body', () => {
  test.each([
    ['no: {"code":"X_Y","reason":"a_b"}', 'no: {code: X_Y; reason: a_b}'],
    ['reason=stolen, body {"code":"X_Y"}', 'reason=stolen, body {code: X_Y}'],
    ['no: {"path":["a"]}', 'no: {path: a}'],
    ['the order has the unknown tags ["a", "b"].', 'the order has the unknown tags <v>.'],
  ])('has the kinds of this body only: %j becomes %j', (message, expected) => {
    expect(foldBodies(message)).toBe(expected)
  })

  test.each([
    [String.raw`no: {"size":"5\" }","code":"X_Y"}`, 'no: {code: X_Y}'],
    [String.raw`with {"size":"5\" }","code":"X_Y"} failed`, 'with {} failed'],
    [String.raw`with {"path":"C:\\"} failed`, 'with {} failed'],
  ])('may have escaped characters: %j becomes %j', (message, expected) => {
    expect(foldBodies(message)).toBe(expected)
  })
})

describe('the kinds of a body', () => {
  test.each<[string, readonly string[]]>([
    ['{"message":"blocked"}', ['blocked']],
    ['{"message":"blocked 5"}', []],
    ['{"message":"Mug"}', []],
    ['{"message":"42"}', []],
    ['{"path":[3],"code":"X_Y"}', ['code: X_Y']],
    [String.raw`{\"message\":\"limit is reached\"}`, ['limit is reached']],
  ])('%s has %j', (body, expected) => {
    expect(kindsOfText(body)).toEqual(expected)
  })

  test.each([
    ['message', 'order is blocked', 'order is blocked'],
    ['message', 'Anna', undefined],
    ['message', '42', undefined],
    ['code', '42', 'code: 42'],
  ])('%s: %j is %j', (key, value, expected) => {
    expect(kindOf(key, value)).toBe(expected)
  })
})
