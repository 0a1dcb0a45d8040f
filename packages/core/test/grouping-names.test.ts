import { describe, expect, test } from 'vitest'
import { hasCaseless, isEntity, replaceNames, shapedWords } from '../src/grouping/names.ts'

describe('letters without cases', () => {
  test.each([
    ['客户不存在', true],
    ['العميل محظور', true],
    ['customer 山田 is blocked', true],
    ['customer is blocked', false],
    ['клиент не найден', false],
    // Signs beyond Greek and Cyrillic are no letters.
    ['limit of 5 € – reached', false],
  ])('of %j: %j', (text, expected) => {
    expect(hasCaseless(text)).toBe(expected)
  })

  test.each([
    ['客户 山田 不存在', '客户 山田 不存在'],
    ['商品 TSH-BLK-XL 不存在', '商品 <v> 不存在'],
    ['customer 山田 is blocked', 'customer <v> is blocked'],
  ])('%j becomes %j', (text, expected) => {
    expect(replaceNames(text)).toBe(expected)
  })
})

describe('the names in a clause', () => {
  test.each([
    // The case of a message without a word in small letters says nothing.
    ['Insolvent Debtor', 'Insolvent Debtor'],
    ['Stock of Acme', 'Stock of <v>'],
    ['no  sofa   left', 'no sofa left'],
    ['no contract with Acme Services', 'no contract with <v> <v>'],
    ['no contract with Marks & Spencer', 'no contract with <v> <v> <v>'],
    ['order of Anna and the others', 'order of <v> and the others'],
    ['supplier Nowak Sp. z o.o. must confirm', 'supplier <v> <v>. <v> <v>. must confirm'],
  ])('%j becomes %j', (text, expected) => {
    expect(replaceNames(text)).toBe(expected)
  })

  test.each([
    ['paid by Anna. Customer Bob is away', 'paid by <v>. Customer <v> is away'],
    ['paid by Anna Schmidt. Customer Bob is away', 'paid by <v> <v>. Customer <v> is away'],
    ['Anna Schmidt is away', '<v> <v> is away'],
    ['no rights for Anna: Limit is reached', 'no rights for <v>: Limit is reached'],
    ['(sent by Anna) Limit is reached', '(sent by <v>) Limit is reached'],
    ['no contact at IKEA. Retry is allowed', 'no contact at <v>. Retry is allowed'],
    ['order of Anna, Bob is away', 'order of <v>, <v> is away'],
  ])('end at punctuation: %j becomes %j', (text, expected) => {
    expect(replaceNames(text)).toBe(expected)
  })

  test.each([
    ['invoice of J. Smith is missing', 'invoice of <v>. <v> is missing'],
    ['invoice of Th. Mann is missing', 'invoice of <v>. <v> is missing'],
    ['no invoice of Dr. Wu is open', 'no invoice of <v>. <v> is open'],
  ])('do not end behind an initial or a title: %j becomes %j', (text, expected) => {
    expect(replaceNames(text)).toBe(expected)
  })

  test.each([
    ['Sofa is missing', 'Sofa is missing'],
    ['check failed: Sofa is missing', 'check failed: Sofa is missing'],
    ['check failed. Sofa is missing', 'check failed. Sofa is missing'],
    ['check failed -- Sofa is missing', 'check failed -- Sofa is missing'],
    ['check failed - Sofa is missing', 'check failed - Sofa is missing'],
    ['unknown article: Sofa', 'unknown article: <v>'],
    ['refused with reason: Insolvent', 'refused with reason: Insolvent'],
    ['refused (limit reached.) Anna is away', 'refused (limit reached.) <v> is away'],
  ])('are not the first word of a sentence: %j becomes %j', (text, expected) => {
    expect(replaceNames(text)).toBe(expected)
  })

  test.each([
    ['no depot in New York', 'no depot in <v> <v>'],
    ['Anna cannot see Order at all', 'Anna cannot see Order at all'],
    ['Anna cannot load Order', 'Anna cannot load Order'],
    ['no Order, Anna is away', 'no Order, <v> is away'],
    ['done: Order Anna is away', 'done: Order <v> is away'],
  ])('include a word of the dictionary only before a name: %j becomes %j', (text, expected) => {
    expect(replaceNames(text)).toBe(expected)
  })
})

describe('the names in a German clause', () => {
  test.each([
    ['Kunde Anna Müller ist gesperrt', 'Kunde <v> <v> ist gesperrt'],
    ['Für Nordwind Logistik ist kein Vertrag da', 'Für <v> <v> ist kein Vertrag da'],
    ['Lieferung nach Hamburg ist nicht da', 'Lieferung nach <v> ist nicht da'],
    ['Lieferung an Kunde Müller fehlt', 'Lieferung an Kunde <v> fehlt'],
    ['Ware aus Köln fehlt', 'Ware aus <v> fehlt'],
    // A word may begin or end as a preposition does.
    ['Es ist ein Fehler aufgetreten', 'Es ist ein Fehler aufgetreten'],
    ['Es ist noch andere Ware da', 'Es ist noch andere Ware da'],
    ['Es fehlt inzwischen Ware', 'Es fehlt inzwischen Ware'],
  ])('%j becomes %j', (text, expected) => {
    expect(replaceNames(text)).toBe(expected)
  })
})

describe('a dotted name', () => {
  test.each([
    ['column orders.total is new', 'column orders.total is new'],
    ['customer.email must be a string', 'customer.email must be a string'],
    ['UNIQUE constraint failed: orders.number', 'UNIQUE constraint failed: orders.number'],
  ])('of a field stays: %j', (text, expected) => {
    expect(replaceNames(text)).toBe(expected)
  })

  test.each([
    ['upload failed: orders.number', 'upload failed: <v>'],
    ['constraint on orders.number failed', 'constraint on <v> failed'],
    ['db.acme.example must be reachable', '<v> must be reachable'],
    ['queue partner.acme.in must be durable', 'queue <v> must be durable'],
    ['option TSH-BLK-XL is new', 'option <v> is new'],
    ['option Globex is new', 'option <v> is new'],
  ])(
    'of another kind is a value, and so is a name without dots: %j becomes %j',
    (text, expected) => {
      expect(replaceNames(text)).toBe(expected)
    },
  )
})

describe('the shapes of words', () => {
  test.each([
    ['Sofa is missing', ['kept', 'word', 'word']],
    ['column orders.total is new', ['word', 'kept', 'word', 'word']],
    ['paid by Anna', ['word', 'word', 'value']],
    ['客户 不存在', ['kept', 'kept']],
  ])('of %j are %j', (text, expected) => {
    expect(shapedWords(text).map(({ shape }) => shape)).toEqual(expected)
  })
})

describe('an entity', () => {
  test.each([
    ['order', true],
    ['orders', true],
    ['tax', true],
    ['taxi', false],
    ['status', false],
    ['colour', true],
  ])('%j: %j', (word, expected) => {
    expect(isEntity(word)).toBe(expected)
  })

  test.each([
    ['voucher EASTER is used', 'voucher <v> is used'],
    ['customer IBAN is closed', 'customer IBAN is closed'],
    ['tenant acme<v> has no plan', 'tenant <v> has no plan'],
    ['role admin_<v> is missing', 'role <v> is missing'],
    ['event OrderPAID is unknown', 'event OrderPAID is unknown'],
    ['event ORDER_PAID is unknown', 'event ORDER_PAID is unknown'],
    ['event E is unknown', 'event <v> is unknown'],
  ])('has a code behind it: %j becomes %j', (text, expected) => {
    expect(replaceNames(text)).toBe(expected)
  })

  test.each([
    ['no plan for tenant acme', 'no plan for tenant <v>'],
    ['done (tenant acme)', 'done (tenant <v>)'],
    ['Tenant acme: no plan', 'Tenant <v>: no plan'],
    ['check failed. Tenant acme: no plan', 'check failed. Tenant <v>: no plan'],
    ['job stuck', 'job stuck'],
    ['the import job stuck', 'the import job stuck'],
    ['import job stuck: no worker', 'import job stuck: no worker'],
    ['job stuck, no worker', 'job stuck, no worker'],
  ])('has a name behind it only in some places: %j becomes %j', (text, expected) => {
    expect(replaceNames(text)).toBe(expected)
  })
})
