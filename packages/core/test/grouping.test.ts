import { describe, expect, test } from 'vitest'
import { classify } from '../src/classify/classify.ts'
import { ownFrame } from '../src/frame.ts'
import { foldBodies, kindOf, kindsOfText } from '../src/grouping/body.ts'
import { normaliseMessage } from '../src/normalise.ts'
import { cycleFromReport } from '../src/reported-failure.ts'
import { signatureParts } from '../src/signature.ts'
import { expectFast, ORDINARY } from './speed.ts'

const keywords = (message: string) => normaliseMessage(message, true)

describe('names in a message', () => {
  test.each([
    ['Customer Anna Schmidt not found', 'Customer <v> not found'],
    ['Anna Schmidt has no tax number', '<v> has no tax number'],
    ['Parcel has no label', 'Parcel has no label'],
    ['paid by Ludwig van der Berg today', 'paid by <v>'],
    ['no depot in Rio de Janeiro', 'no depot in <v>'],
    ['no depot in New York', 'no depot in <v>'],
    ['no depot in St. Gallen', 'no depot in <v>'],
    ['signed by J. Robert Oppenheim', 'signed by <v>'],
    ['Dr. Wu is away', '<v> is away'],
    ['no terms of Acme GmbH & Co. KG', 'no terms of <v>'],
    ['customer 山田太郎 is blocked', 'customer <v> is blocked'],
    ['注文5の在庫が不足しています', '注文<v>の在庫が不足しています'],
    ['Limit Reached', 'Limit Reached'],
    ['check failed: Price must be positive', 'check failed: Price must be positive'],
    ['unknown customer: Schmidt', 'unknown customer: <v>'],
    ['{reason: Insolvent}', '{reason: Insolvent}'],
    ['Kunde Müller ist gesperrt', 'Kunde <v> ist gesperrt'],
    ['Für Nordwind Logistik ist kein Vertrag da', 'Für <v> ist kein Vertrag da'],
    ['Lieferung nach Hamburg ist nicht da', 'Lieferung nach <v> ist nicht da'],
    ['Lieferung ist nicht da', 'Lieferung ist nicht da'],
  ])('%j becomes %j', (message, expected) => {
    expect(normaliseMessage(message)).toBe(expected)
  })

  test.each([
    ['unknown article TSH-BLK-XL', 'unknown article <v>'],
    ['unknown article RX-100.220/B', 'unknown article <v>'],
    ['no rate from EUR to CHF', 'no rate from <v> to <v>'],
    ['no VAT ID', 'no VAT ID'],
    ['read ECONNRESET', 'read ECONNRESET'],
    ['no contact at IKEA', 'no contact at <v>'],
    ['vehicle B-MW 1234 is not insured', 'vehicle <v> is not insured'],
    ['IBAN DE89 3704 0044 0532 0130 00 is closed', 'IBAN <v> is closed'],
    ['closed on Friday or in October', 'closed on <v> or in <v>'],
    ['closed on friday morning', 'closed on <v>'],
    ['no slot at 14:00 or 2 pm', 'no slot at <v>'],
    ['code UNABLE_TO_LOCK is new', 'code UNABLE_TO_LOCK is new'],
    ['field customer_id is empty', 'field customer_id is empty'],
    ['OrderService failed', 'OrderService failed'],
    ['order.items.reduce is not a function', 'order.items.reduce is not a function'],
    ['customer.email must be a string', 'customer.email must be a string'],
    ['queue partner.acme.in must be durable', 'queue <v> must be durable'],
    ['host db.acme.example is down', 'host <v> is down'],
    ['column orders.total is new', 'column orders.total is new'],
    ['UNIQUE constraint failed: orders.number', 'UNIQUE constraint failed: orders.number'],
    ['no rights for sqs:SendMessage', 'no rights for sqs:SendMessage'],
    ['cannot insert into ("SHOP"."ORDERS")', 'cannot insert into (SHOP.ORDERS)'],
    ['read-only or globex-eu', 'read-only or <v>'],
  ])('codes: %j becomes %j', (message, expected) => {
    expect(normaliseMessage(message)).toBe(expected)
  })

  test.each([
    ['tenant acme has no plan', 'tenant <v> has no plan'],
    ['tenant suspended by admin', 'tenant suspended by admin'],
    ['no route for warehouse berlin', 'no route for warehouse <v>'],
    ['card stolen', 'card stolen'],
    ['Tenant acme: no plan', 'Tenant <v>: no plan'],
    ['done (booking xzuzoccj)', 'done (booking <v>)'],
    ['voucher SUMMER is used', 'voucher <v> is used'],
    ['customer IBAN is closed', 'customer IBAN is closed'],
    ['job send_mail failed', 'job <v> failed'],
    ['field send_mail failed', 'field send_mail failed'],
    ['topic orders is missing', 'topic <v> is missing'],
    ['customer order is missing', 'customer order is missing'],
  ])('of an entity: %j becomes %j', (message, expected) => {
    expect(normaliseMessage(message)).toBe(expected)
  })

  test.each([
    ['unknown tags: red, green and blue', 'unknown tag: <v>'],
    ['request refused: boom', 'request refused: boom'],
    ['reason: blocked', 'reason: blocked'],
    ['tags [red, green] are bad', 'tag <v> is bad'],
    ['[Errno 2] no file', '[Errno 2] no file'],
    ['no articles A-1, B-2 and C-3', 'no article <v>'],
    ['tenant=acme code=E17 failed', 'tenant=<v> code=E17 failed'],
    ['tenant=acme code=blocked failed', 'tenant=<v> code=blocked failed'],
    ['name="Anna Schmidt" reason="blocked"', 'name=<v> reason=blocked'],
    ['error=invalid_grant&name=bob', 'error=invalid_grant&name=<v>'],
  ])('lists and pairs: %j becomes %j', (message, expected) => {
    expect(normaliseMessage(message)).toBe(expected)
  })

  test.each([
    ['GET https://api.acme.example/v1/orders', 'GET https://<v>/v<v>/orders'],
    ['no payments-0.payments.prod.svc.cluster.local', 'no payments'],
    ['file /in/acme/orders.csv is empty', 'file <v> is empty'],
    ['GET /orders/sofa-3/lines failed', 'GET /orders/<v>/lines failed'],
    ['failed: 422 customer is unknown', 'failed: 422 customer is unknown'],
    ['failed: 42 customers are unknown', 'failed: <v> customer is unknown'],
    ['sync returned 503', 'sync returned 503'],
    ['sync returned 503 rows', 'sync returned <v> row'],
    ['[404 Not Found] no item', '[404 Not Found] no item'],
    ['404 Client Error', '404 Client Error'],
    ['postal code 80331 is new', 'postal code <v> is new'],
    ['SQLSTATE[23505]: no', 'SQLSTATE[23505]: no'],
    ['room E17 is full', 'room <v> is full'],
  ])('addresses and statuses: %j becomes %j', (message, expected) => {
    expect(normaliseMessage(message)).toBe(expected)
  })

  test.each([
    [
      'insert into "a"."orders" ("x") values ($1), ($2) - duplicate key',
      'insert into orders - duplicate key',
    ],
    ['update orders set x = 1 where id = 5', 'update orders'],
    ['please update the order - now', 'please update the order - now'],
    ['select "x", "y" from "orders" where id = 5 - no', 'select orders - no'],
    [
      'Failed query: delete from orders where a = 1\nparams: Anna,5',
      'Failed query: delete from orders',
    ],
    [
      'Invalid `a.b()` invocation in\n/app/a.ts:4:2\n\n 3 x\n\nArgument is bad',
      'Invalid <v> invocation Argument is bad',
    ],
    ["not equal:\n+ actual - expected\n\n+ 'a'\n- 'b'", 'not equal:'],
    ['<a:Fault><b x="1">no contract</b></a:Fault>', 'no contract'],
    ['<b> is empty', '<b> is empty'],
  ])('statements and markup: %j becomes %j', (message, expected) => {
    expect(normaliseMessage(message)).toBe(expected)
  })
})

describe('a body in a message', () => {
  test.each([
    ['with {"a":{"b":[1,"}"]}} failed: 422', 'with {} failed: 422'],
    ['no: {"code":"X_Y","id":5}', 'no: {code: X_Y}'],
    ['no: {"code":"X_Y"} in run', 'no: {} in run'],
    ['no: [{"code":"X_Y"},{"code":"X_Y"}].', 'no: {code: X_Y}.'],
    ['no: {"code":"X_Y","id', 'no: {code: X_Y}'],
    ['no: {code: X_Y', 'no: {code: X_Y'],
    ['unknown ["a", "b"] in list', 'unknown <v> in list'],
    ["no: {'reason': 'X_Y'}", 'no: {reason: X_Y}'],
    ['no: { reason: X_Y }', 'no: {reason: X_Y}'],
    ['no: {\\"code\\":\\"X_Y\\"}', 'no: {code: X_Y}'],
    ['cannot merge Customer{id=5, name=Anna}', 'cannot merge Customer{}'],
    ["expected '{' or {id}", "expected '{' or {id}"],
    ['Order["lines"] is bad', 'Order["lines"] is bad'],
  ])('%j becomes %j', (message, expected) => {
    expect(foldBodies(message)).toBe(expected)
  })

  test('is read up to 16 KiB, and the text behind it is kept', () => {
    const message = (lines: number) =>
      `POST with {"a":[${'"x",'.repeat(lines)}1]} failed: 422 no account`
    expect(normaliseMessage(message(2000))).toBe(normaliseMessage(message(2)))
    expect(normaliseMessage(message(5000))).not.toContain('account')
  })

  test.each<[string, readonly string[]]>([
    ['{"code":"b","reason":"a"}', ['code: b', 'reason: a']],
    ['{"reason":"a","code":"b"}', ['code: b', 'reason: a']],
    ['{"path":["lines",3,"price"],"code":422}', ['code: 422', 'path: lines/price']],
    ['{"type":"card_error","name":"Anna"}', ['type: card_error']],
    ['{"name":"CardError","status":"open"}', ['name: CardError']],
    ['{"status":422,"state":"NOT_DONE"}', ['state: NOT_DONE', 'status: 422']],
    ['{"message":"limit reached","title":"Mug"}', ['limit reached']],
    ['{"message":"size 42"}', []],
    ['{"message":"limit of 42 reached"}', ['limit of 42 reached']],
    ['{"code":null,"reason":""}', []],
    ['{"zipcode":"a"}', []],
    [`{"code":"${'x'.repeat(301)}"}`, []],
    [`{"code":"${'x'.repeat(300)}"}`, [`code: ${'x'.repeat(120)}`]],
    [
      `[${Array.from({ length: 9 }, (_, at) => `{"code":"c${at}"}`).join()}]`,
      Array.from({ length: 8 }, (_, at) => `code: c${at}`),
    ],
  ])('%s has the kinds %j', (body, expected) => {
    expect(kindsOfText(body)).toEqual(expected)
  })

  test('has no kind for other keys', () => {
    expect(kindOf('sku', 'a b')).toBeUndefined()
  })
})

describe('the keywords of a message', () => {
  test.each([
    ['Customer Anna Schmidt is blocked since 5 days', 'block customer'],
    ['blocked is the customer Bob', 'block customer'],
    ['no sofa in warehouse berlin', 'no warehouse'],
    ['delivery to High Street is late', 'delivery late'],
    ['cannot load Order 5', 'cannot load order'],
    ['cannot load Order or more', 'cannot load more'],
    ['order in status CLOSED is late', 'closed late order status'],
    ['order of group CLOSED is late', 'group late order'],
    ['load failed: Limit is reached', 'fail limit load reach'],
    ['call failed with 404 Not Found', '404 call fail found not'],
    ['Rate Limit', 'limit rate'],
    ['IKEA is closed', 'closed'],
    ['GET is not allowed', 'GET allowed not'],
    ['read-only file of eu-west', 'file read-only'],
    ['no image/webp and /shops/acme/orders/sofa-3', '/shops/<v>/orders/<v> no'],
    ['no class StockClient of PayPal', 'StockClient class no'],
    ['items[3].sku is empty or user42', 'empty items[<v>].sku'],
    ['column "price" is empty', 'column empty price'],
    ['connect ENOENT', 'ENOENT connect'],
    ['limits exceeded, limit exceeds', 'exceed limit'],
    ['no authorisation', 'authorisation no'],
    ['Le client Dupont n’est pas à Paris', 'client pas'],
    ['Kunde Müller hat keine Anschrift', 'Kunde hat keine'],
    ['注文5 が ない', '注文<v> が ない'],
    [
      'order 5 failed; caused by Error: customer Bob is blocked',
      'fail order; caused by Error: block customer',
    ],
  ])('of %j are %j', (message, expected) => {
    expect(keywords(message)).toBe(expected)
  })

  test('replace the message when the type, the code or the stack also identify the failure', () => {
    const bare = { class: 'unknown', type: 'Error', code: undefined, stack: undefined } as const
    const of = (change: object) =>
      signatureParts({ ...bare, message: 'no sofa of Anna', handler: 'a', ...change }).message
    expect(of({})).toBe('no sofa of <v>')
    expect(of({ type: 'StockError' })).toBe('no')
    expect(of({ code: 'E1' })).toBe('no')
    expect(of({ stack: '    at a (/app/b.ts:1:1)' })).toBe('no')
    expect(of({ stack: '    at a (node:b:1:1)' })).toBe('no sofa of <v>')
  })
})

describe('properties of an error', () => {
  const options = { rules: [], handler: 'orders', includeStack: false, now: 0 }
  const signature = (fields: object) =>
    classify(Object.assign(new Error('failed'), { stack: 'Error: failed' }, fields), options)
      .signature

  test.each<[string, object, object]>([
    ['reason', { reason: 'stolen_card' }, { reason: 'expired_card' }],
    ['number of a code', { code: 21_211 }, { code: 21_408 }],
    ['column', { column: 'price' }, { column: 'tax' }],
    ['code-like type', { type: 'card_error' }, { type: 'api_error' }],
    ['body', { response: { data: { code: 'a' } } }, { response: { data: { code: 'b' } } }],
    ['text of a body', { body: '{"code":"a"}' }, { body: '{"code":"b"}' }],
    [
      'list in a body',
      { data: { errors: [{ field: 'a' }] } },
      { data: { errors: [{ field: 'b' }] } },
    ],
    ['path in a body', { errors: [{ path: ['a', 1] }] }, { errors: [{ path: ['b', 1] }] }],
    ['reason of a cause', { cause: { reason: 'a_b' } }, { cause: { reason: 'b_c' } }],
  ])('separate failures: %s', (_, one, other) => {
    expect(signature(one)).not.toBe(signature(other))
    expect(signature(one)).toBe(signature({ ...one }))
  })

  test.each<[string, object, object]>([
    ['long numbers', { code: 1_234_567 }, { code: 7_654_321 }],
    ['fractions', { code: 1.5 }, { code: 2.5 }],
    ['names', { reason: 'customer Anna' }, { reason: 'customer Bob' }],
    ['long texts', { reason: 'a_'.repeat(101) }, { reason: 'b_'.repeat(101) }],
    ['words of the domain', { type: 'b2b' }, { type: 'web' }],
    ['plain text bodies', { body: 'a_b' }, { body: 'b_c' }],
    ['positions', { errors: [{ path: ['a', 1] }] }, { errors: [{ path: ['a', 2] }] }],
    ['other properties', { sku: 'a_b' }, { sku: 'b_c' }],
  ])('do not separate failures: %s', (_, one, other) => {
    expect(signature(one)).toBe(signature(other))
  })
})

describe('the frame of other languages', () => {
  const python = (...frames: readonly string[]) =>
    ['Traceback (most recent call last):', ...frames, "KeyError: 'XK'"].join('\n')

  test.each([
    [
      python(
        '  File "/app/a.py", line 3, in run',
        '    b()',
        '  File "/app/b.py", line 9, in rate',
      ),
      'rate b.py',
    ],
    [
      python(
        '  File "/app/a.py", line 3, in run',
        '  File "/usr/lib/python3.12/json/x.py", line 9, in load',
      ),
      'run a.py',
    ],
    [
      python(
        '  File "/app/venv/site-packages/c.py", line 3, in run',
        '  File "<string>", line 9, in x',
      ),
      undefined,
    ],
    [
      '#0 /var/www/vendor/a/B.php(3): B->c()\n#1 /var/www/src/D.php(12): Acme\\D->e()\n#2 {main}',
      'Acme\\D->e D.php',
    ],
    ["/usr/lib/ruby/gems/3.3/a.rb:1:in 'b'\n\tfrom /app/lib/c.rb:42:in 'C#d'", 'C#d c.rb'],
    ["/app/c.rb:42:in `d'", 'd c.rb'],
  ])('of %j is %j', (stack, expected) => {
    expect(ownFrame(stack)).toBe(expected)
  })

  test('is the innermost one of a long stack of Python', () => {
    const outer = '  File "/app/worker.py", line 3, in run\n    step()\n'.repeat(90)
    const signature = (name: string) => {
      const stack = `Traceback (most recent call last):\n${outer}  File "/app/tax.py", line 9, in ${name}\nKeyError: 'XK'`
      const report = { type: 'KeyError', message: "'XK'", stack, at: undefined, attempts: 1 }
      return cycleFromReport(report).history[0]?.signature
    }
    expect(signature('rate')).not.toBe(signature('price'))
    expect(signature('rate')).toBe(signature('rate'))
  })
})

describe('a hostile message', () => {
  test.each([
    ['braces', '{"a":'],
    ['closed braces', '{"a":1}'],
    ['brackets', '["'],
    ['keys', '"code":"'],
    ['lists of keys', '"path":['],
    ['statements', 'select a'],
    ['tables', 'update a set '],
    ['sources', '[Source: '],
    ['invocations', ' invocation\n\n'],
    ['tags', '</a '],
    ['names', 'Anna '],
    ['joined names', 'A-B-'],
    ['paths', '/a.b'],
    ['dotted names', 'a.'],
    ['snakes', 'a_'],
    ['humps', 'aB'],
    ['entities', 'tenant acme '],
    ['pairs', 'a=b '],
    ['listed words', 'a: b, '],
    ['values', '<v> '],
    ['services', 'a.svc'],
    ['punctuation', '.,;'],
    ['brackets in a word', 'a)('],
    ['lines', 'a\n'],
    ['clauses', 'a; '],
    ['frames of Python', '\n  File "a'],
    ['frames of PHP', '\n#1 a('],
  ])('100 kB of %s take no time', (_, part) => {
    const message = part.repeat(Math.ceil(100_000 / part.length))
    for (const type of ['Error', 'StockError']) {
      const hostile = {
        class: 'unknown',
        type,
        code: undefined,
        message,
        stack: message,
        handler: 'a',
      } as const
      const ordinary = { ...hostile, message: ORDINARY, stack: ORDINARY }
      expectFast(
        () => signatureParts(hostile),
        () => signatureParts(ordinary),
        10,
      )
    }
  })
})
