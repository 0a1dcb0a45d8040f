import { describe, expect, test } from 'vitest'
import { keywordsOf } from '../src/grouping/keywords.ts'

describe('the keywords of a message with several clauses', () => {
  test.each([
    ['limit reached; order is late', 'late limit order reach'],
    ['limit reached\norder is late', 'late limit order reach'],
    ['order failed; order failed', 'fail order'],
    // The first word of an indented line is not a name.
    ['check failed\n  Order is late', 'check fail late order'],
  ])('of %j are %j', (message, expected) => {
    expect(keywordsOf(message)).toBe(expected)
  })
})

describe('the keywords of a message in letters without cases', () => {
  test.each([
    ['在庫がない; 注文がない', '在庫がない; 注文がない'],
    ['在庫がない\norder failed', '在庫がない; order failed'],
    ['注文 TSH-BLK-XL がない', '注文 <v> がない'],
  ])('are the message: %j becomes %j', (message, expected) => {
    expect(keywordsOf(message)).toBe(expected)
  })

  test.each([
    ['customer 山田 is blocked', 'block customer'],
    ['customer 山田 blocked by OrderService', 'OrderService block customer'],
  ])('are words when only a name has such letters: %j becomes %j', (message, expected) => {
    expect(keywordsOf(message)).toBe(expected)
  })
})

describe('the keywords of another language', () => {
  test.each([
    ['Ware ist nicht über Nacht gebucht', 'gebucht ist nicht über'],
    ['IKEA ist nicht da', 'da ist nicht'],
    ['ÖBB ist nicht da', 'da ist nicht'],
    ['Le client Dupont est absent', 'absent client est'],
  ])('are the words in small letters: %j becomes %j', (message, expected) => {
    expect(keywordsOf(message)).toBe(expected)
  })

  test.each([
    // `per` is a word of Italian too.
    ['sofa limit per customer is reached', 'customer limit reach'],
    // Two of five words are known.
    ['error: pedido para cliente local', 'error local'],
  ])('are not used when enough words are English: %j becomes %j', (message, expected) => {
    expect(keywordsOf(message)).toBe(expected)
  })

  test('are not used without a frequent word of such a language', () => {
    expect(keywordsOf('sofa lamp rug desk missing')).toBe('desk missing')
  })
})

describe('a capitalised word', () => {
  test.each([
    ['Order is late', 'late order'],
    ['order in status CLOSED is late', 'closed late order status'],
    ['load failed: Limit is reached', 'fail limit load reach'],
    ['cannot load Order <v>', 'cannot load order'],
    ['call failed with 404 Not Found', '404 call fail found not'],
  ])('is a keyword when it is no name: %j becomes %j', (message, expected) => {
    expect(keywordsOf(message)).toBe(expected)
  })

  test.each([
    ['order marked CLOSED is late', 'late mark order'],
    ['order refused, reason: Closed', 'order reason refused'],
    ['order refused, reason: Class-A', 'order reason refused'],
    ['delivery failed: Street', 'delivery fail'],
    ['delivery failed: Street <v>', 'delivery fail'],
    ['cannot load Order', 'cannot load'],
    ['damage at Main Station <v>', 'damage'],
  ])('is part of a name elsewhere: %j becomes %j', (message, expected) => {
    expect(keywordsOf(message)).toBe(expected)
  })

  test('a name of an entity is no keyword, although the dictionary has it', () => {
    expect(keywordsOf('topic orders is missing')).toBe('missing topic')
  })
})

describe('names of the program', () => {
  test.each([
    ['no class StockClient', 'StockClient class no'],
    ['no class PayPal', 'class no'],
    ['no field myPayPal', 'field myPayPal no'],
    ['PayPal.charge is not a function', 'PayPal.charge function not'],
    ['no items[<v>].sku', 'items[<v>].sku no'],
    ['no user<v>', 'no'],
  ])('in %j are kept unless they look like a brand: %j', (message, expected) => {
    expect(keywordsOf(message)).toBe(expected)
  })

  test.each([
    ['GET /v<v>/orders failed', '/v<v>/orders GET fail'],
    ['GET /orderItems/<v> failed', '/orderItems/<v> GET fail'],
    ['GET /orders/line_xyz failed', '/orders/line_xyz GET fail'],
    ['GET /shops/acme/orders failed', '/shops/<v>/orders GET fail'],
    ['GET /orders/<v>-sofa/lines failed', '/orders/<v>/lines GET fail'],
    ['GET /orders/sofa-<v>/lines failed', '/orders/<v>/lines GET fail'],
    ['GET /orders/image/total failed', '/orders/image/total GET fail'],
    ['type image/webp failed', 'fail type'],
  ])('in %j are paths without their values: %j', (message, expected) => {
    expect(keywordsOf(message)).toBe(expected)
  })
})
