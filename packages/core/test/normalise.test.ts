import { describe, expect, test } from 'vitest'
import { ownFrame } from '../src/frame.ts'
import { normaliseMessage } from '../src/normalise.ts'

describe('a normalised message', () => {
  test.each([
    ['750', '<v>'],
    ['at 09:41:17AM', 'at <v>'],
    ['connect [b636:d989:da60]:5432', 'connect <v>'],
    ['no customer cus_amymrrtTcgnqudjs', 'no customer <v>'],
    ['no token tok_CCsvieegfbvyrp', 'no token <v>'],
    ['type_INSUFFICIENTFUNDS is unknown', 'type_INSUFFICIENTFUNDS is unknown'],
    ['line LjOevRrJXRTJ', 'line <v>'],
    ['order YtWbnLqXGHOX item', 'order <v> item'],
    ['code IlkkNxzvJoApIroYWs', 'code <v>'],
    ['user LUBhGQKVaPBZkLrMEE', 'user <v>'],
    ['id OQXdGgHcSPuMm', 'id <v>'],
    ['26fb', '<v>'],
  ])('has placeholders for ids: %s', (message, expected) => {
    expect(normaliseMessage(message)).toBe(expected)
  })

  test.each([
    [
      `Unexpected token 'x', "fpg" is not valid JSON (line 18 column 15)`,
      'Unexpected token <v> is not valid JSON',
    ],
    ['[Source: (String)"xdx"; line: 26, column: 2]', '[Source]'],
    ['[Source: (String)"rlo"; line: 17, column: 30]', '[Source]'],
  ])('has no position of a parser: %s', (message, expected) => {
    expect(normaliseMessage(message)).toBe(expected)
  })

  test.each([
    ['Exit-code 1'],
    ['exit code 1'],
    ['response code 404'],
    ['Response code 404'],
    ['Result_code 3'],
    ['result code 3'],
    ['reason code #3'],
    ['Reason code #3'],
    ['ERR_12'],
  ])('keeps numbers that name a kind of failure: %s', (message) => {
    expect(normaliseMessage(message)).toBe(message)
  })

  test.each([
    ['"x1http://a" failed', '<v> failed'],
    ['"fngu" xx argument', '<v> xx argument'],
    ['"fngu" argument', '"fngu" argument'],
    [`error message x "dvy 'q'"`, 'error message x <v>'],
    [`error message "dvy 'q'"`, 'error message dvy <v>'],
  ])('keeps only quoted names and messages: %s', (message, expected) => {
    expect(normaliseMessage(message)).toBe(expected)
  })

  test.each([
    ['no sofa\n\nno lamp', 'no sofa no lamp'],
    ['no sofa; ; no lamp', 'no sofa; no lamp'],
    ['\nno sofa\n', 'no sofa'],
  ])('has no empty lines and clauses: %j becomes %j', (message, expected) => {
    expect(normaliseMessage(message)).toBe(expected)
  })

  test.each([['; '], ['\n']])('has at most 60 parts between %j', (separator) => {
    const words = Array.from(
      { length: 61 },
      (_, at) => `z${'abcdefgh'.charAt(at / 8)}${'klmnopqr'.charAt(at % 8)}`,
    )
    const read = normaliseMessage(words.join(separator))
    expect(read).toBe(normaliseMessage(words.slice(0, 60).join(separator)))
    expect(read).not.toBe(normaliseMessage(words.slice(0, 59).join(separator)))
  })

  test.each([
    ['tags [red, green] of sofa', 'tag <v> of sofa'],
    ['tags [] of sofa', 'tag <v> of sofa'],
    ['tags [red] of sofa', 'tags [red] of sofa'],
    ['unknown tags: red, green', 'unknown tag: <v>'],
    ['unknown tags: red,green', 'unknown tag: <v>'],
    ['wrong tags: red, closed', 'wrong tags: red, closed'],
    ['wrong tags: red and closed', 'wrong tags: red and closed'],
  ])('has placeholders for lists of names: %j becomes %j', (message, expected) => {
    expect(normaliseMessage(message)).toBe(expected)
  })

  test.each([
    ['room E170 is full', 'room <v> is full'],
    ['failed with E1700', 'failed with E1700'],
    ['plan E with 1001 rows', 'plan <v> with <v> row'],
  ])('has error numbers of four digits or more: %j becomes %j', (message, expected) => {
    expect(normaliseMessage(message)).toBe(expected)
  })

  test.each([
    ['insert into shop.orders (a) values (1) - no', 'insert into orders - no'],
    ['delete from "shop"."orders" where a = 1 - no', 'delete from orders - no'],
    ['select a from `shop`.`orders` where b = 1 - no', 'select orders - no'],
    ['update orders set a = 1 - no', 'update orders - no'],
  ])('has the table of a statement without its schema: %j becomes %j', (message, expected) => {
    expect(normaliseMessage(message)).toBe(expected)
  })

  test('contains the text before a cause once', () => {
    expect(normaliseMessage('order 17 failed; caused by timeout 30')).toBe(
      'order <v> failed; caused by timeout <v>',
    )
  })
})

describe('the frame of the user', () => {
  const stack = (...frames: readonly string[]) =>
    ['Error: no', ...frames.map((frame) => `    at ${frame}`)].join('\n')

  test.each([
    ['Acme.Orders.Charge[](Order order)', 'Acme.Orders.Charge'],
    ['Acme.Orders.Charge[TKey,TValue](Order order)', 'Acme.Orders.Charge'],
    ['xjava.util.Orders.charge(Orders.java)', 'xjava.util.Orders.charge'],
    ['Acme.Orders.Charge(Order order)\r', 'Acme.Orders.Charge'],
  ])('is %s', (frame, expected) => {
    expect(ownFrame(stack('System.Collections.Get(String key)', frame))).toBe(expected)
  })

  test.each([
    ['kotlin.Result.get(Result.kt)'],
    ['kotlinx.Jobs.run(Jobs.kt)'],
    ['java.util.Map.get(Map.java)'],
  ])('is not the platform: %s', (frame) => {
    expect(ownFrame(stack(frame, 'com.acme.Orders.charge(Orders.java:1)'))).toBe(
      'com.acme.Orders.charge',
    )
  })
})
