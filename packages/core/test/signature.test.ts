import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ClassifyOptions, classify } from '../src/classify/classify.ts'
import { type SignatureInput, signatureOf, signatureParts } from '../src/signature.ts'
import { expectFast, ORDINARY } from './speed.ts'

const input: SignatureInput = {
  class: 'transient',
  type: 'TypeError',
  code: 'ECONNREFUSED',
  message: 'connect ECONNREFUSED 10.0.0.1:5432',
  stack: '    at charge (/app/src/payments.ts:10:5)',
  handler: 'orders',
}

/** Returns the message of a failure without a type, a code and a stack, which only the message identifies. */
function normalised(message: string): string {
  const bare = { ...input, type: 'Error', code: undefined, stack: undefined }
  return signatureParts({ ...bare, message }).message
}

function frameOf(...lines: readonly string[]): string | undefined {
  return signatureParts({ ...input, stack: lines.join('\n') }).frame
}

describe('the signature', () => {
  test('is the version and sixteen hex digits, the same in every later release', () => {
    expect(signatureOf(input)).toBe('3-7fe9352cb09ecead')
  })

  test.each(['', 'Error', 'error', 'Exception', 'object', 'string'])(
    'keeps the words of the message for the type %j, which says nothing',
    (type) => {
      const bare = { ...input, type, code: undefined, stack: undefined }
      expect(signatureParts({ ...bare, message: 'the order was not sent' }).message).toBe(
        'the order was not sent',
      )
    },
  )

  test('shows its parts', () => {
    expect(signatureParts(input)).toEqual({
      version: 3,
      class: 'transient',
      type: 'TypeError',
      code: 'ECONNREFUSED',
      message: 'ECONNREFUSED connect',
      frame: 'charge payments.ts',
      handler: 'orders',
      kinds: [],
    })
  })

  test.each<[string, Partial<SignatureInput>]>([
    ['class', { class: 'unknown' }],
    ['type', { type: 'RangeError' }],
    ['code', { code: 'ECONNRESET' }],
    ['absence of a code', { code: undefined }],
    ['message', { message: 'connect ETIMEDOUT 10.0.0.1:5432' }],
    ['function', { stack: '    at refund (/app/src/payments.ts:10:5)' }],
    ['file', { stack: '    at charge (/app/src/billing.ts:10:5)' }],
    ['absence of a stack', { stack: undefined }],
    ['handler', { handler: 'refunds' }],
  ])('changes with the %s', (_, change) => {
    expect(signatureOf({ ...input, ...change })).not.toBe(signatureOf(input))
  })

  test('keeps its parts separate', () => {
    const a = signatureOf({ ...input, type: 'A', code: 'B C' })
    expect(signatureOf({ ...input, type: 'A B', code: 'C' })).not.toBe(a)
  })

  test('is not changed by the line, the directory or the machine', () => {
    const stack =
      '    at charge (file:///C:/build/42/dist/payments.ts:99:1)\n    at other (/x/y.ts:1:1)'
    expect(signatureOf({ ...input, stack })).toBe(signatureOf(input))
  })
})

describe('the kinds', () => {
  test.each([
    ['reason: stolen_card'],
    ['reason: blocked'],
    ['column: b'],
    ['code: 5'],
    ['code: 21211'],
    ['errno: -104'],
  ])('contain %j unchanged, because it is a code', (kind) => {
    expect(signatureParts({ ...input, kinds: [kind] }).kinds).toEqual([kind])
  })

  test.each([
    ['code: 1234567', 'code'],
    ['customer Anna is blocked', 'block customer'],
    ['customer Anna has state: blocked', 'block customer state'],
    ['reason: no sofa of Anna', 'no reason'],
  ])('contain the keywords of other texts: %j becomes %j', (kind, expected) => {
    expect(signatureParts({ ...input, kinds: [kind] }).kinds).toEqual([expected])
  })

  test('contain equal ones once', () => {
    const kinds = ['customer Anna is blocked', 'customer Bob is blocked']
    expect(signatureParts({ ...input, kinds }).kinds).toEqual(['block customer'])
  })
})

describe('the message', () => {
  test.each([
    ['order 12345 not found', 'order <v> not found'],
    ['order 1234567890 not found', 'order <v> not found'],
    ['-1.5e3 is below 0', '<v> is below <v>'],
    ['order_42 and order-42 and user42', 'order_<v> and user<v>'],
    ['took 30s of 5000ms', 'took <v> of <v>'],
    ['id a1b2 or 1a2 or cus_Nff2Hib', 'id <v> or cus_<v>'],
    ['id ab12c or 12a3 or 1ab2', 'id <v>'],
    ['0x1F at 0xdeadbeef', '<v> at <v>'],
    ['commit deadbeef by ord_cafebabe1', 'commit <v> by ord_<v>'],
    ['decade facade', 'decade facade'],
    ['key 507f1f77bcf86cd799439011.', 'key <v>'],
    ['uuid 550e8400-e29b-41d4-a716-446655440000!', 'uuid <v>!'],
    ['order_550E8400-E29B-41D4-A716-446655440000', 'order_<v>'],
    ['at 2026-01-31', 'at <v>'],
    ['at 2026-01-31T12:00Z', 'at <v>'],
    ['at 2026-01-31 12:00:01,123 today', 'at <v>'],
    ['at 2026-01-31T12:00:01.123456789+02:00', 'at <v>'],
    ['at 2026-01-31T12:00:01-0200', 'at <v>'],
    ['at 12:00:01 or 9:00:01.5', 'at <v>'],
    ['at 9:00:01.123 or 9:00:01,123456789', 'at <v>'],
    ['connect 127.0.0.1:5432.', 'connect <v>'],
    ['connect 127.0.0.1 now', 'connect <v> now'],
    ['connect ::1:5432', 'connect <v>'],
    ['connect 2001:DB8::ff00:42:8329', 'connect <v>'],
    ['version 1.2.3', 'version <v>'],
    ['version 1.2.3.4.5', 'version <v>'],
    ['mail to bob.smith+tag@example.co.uk failed', 'mail to <v> failed'],
    [`person "name" or 'mail' or \`age\` is bad`, 'person <v> is bad'],
    [`"" is empty`, '<v> is empty'],
    [`can't and won't read 'it' today`, `can't and won't read <v>`],
    ['token eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9 expired', 'token <v> expired'],
    ['token V1StGXR8_Z5jdHi6B-myT expired', 'token <v> expired'],
    ['token abcdefghij0klmnopqr= end', 'token <v> end'],
    ['token abcdefghij12klmnopqr= end', 'token <v> end'],
    ['token abcdefghij0klmnopqr end', 'token <v> end'],
    ['AbstractSingletonProxyFactoryBean failed', 'AbstractSingletonProxyFactoryBean failed'],
    ['Order-Service-Worker-20260101', '<v>'],
    [
      `Unexpected token 'a', "{"a": a}" is not valid JSON`,
      'Unexpected token <v> is not valid JSON',
    ],
    [
      `Unexpected token 'a', "{"a":\na}" is not valid JSON`,
      'Unexpected token <v> is not valid JSON',
    ],
    [
      `Unexpected token 'b', ..."x": "y" b"... is not valid JSON`,
      'Unexpected token <v> is not valid JSON',
    ],
    [
      `Unexpected token ''', "{'id': 5" is not valid JSON`,
      'Unexpected token <v> is not valid JSON',
    ],
    ['Bad text in JSON at position 9 (line 1 column 10)', 'Bad text in JSON at position <v>'],
    [
      'no number [Source: (String)"{"a":"b"; line: 3, column: 7] (in Order["price"])',
      'no number [Source] (in Order[<v>])',
    ],
    ['Key (a, b)=(x, 5) already exists', 'Key (a, b) <v> already exists'],
    ['GET https://a.b/v1/orders/5?limit=5&c=x: no', 'GET https://<v>/v<v>/orders/<v> no'],
    ['GET /v1/orders?c=a/b then', 'GET /v<v>/orders then'],
    ['is it /usr? yes=no', 'is it /usr? yes=<v>'],
    ['on 15 Nov 2026', 'on <v>'],
    ['on Sun, 15 Nov 2026 16:10:06 GMT.', 'on <v>'],
    ['on Sun Nov 15 2026 16:10:06 GMT+0100 (Central European Time) at', 'on <v> at'],
    ['on November 15, 2026, 4:10 PM', 'on <v>'],
    ['at 4:10:06 PM today', 'at <v>'],
    ['connect ::ffff:10.0.0.1:80', 'connect <v>'],
    ['connect [::1]:5432 or [fd00::1]', 'connect <v>'],
    ['connect fe80::1%eth0', 'connect <v>'],
    ['no api-7d9f4c6b8-x2x9z.prod', 'no <v>'],
    ['no api-7d9f4c6b8-blue', 'no <v>'],
    ['paid 1,234.50 EUR or €12 or 12,50 € or CHF 5', 'paid <v>'],
    ['paid 1’234.50 or 1\u00a0234,50', 'paid <v>'],
    ['after 950 ms or 1.2s or 2m30s or 3 minutes', 'after <v>'],
    ['the 1st or 22nd of 5 GiB', 'the <v> of <v>'],
    ['commit a1b2c3d or abcde12 or 12345ab', 'commit <v>'],
    ['booking 12hijklm', 'booking <v>'],
    ['cus_NffrfeufNVahibq or get_name', 'cus_<v> or get_name'],
    ['org-aB3cD4eF5gH6iJ7kL8mN9oP0 gone', '<v> gone'],
    ['id zCwltgNWUUekEqDtkITi', 'id <v>'],
    ['WaitToFinish of IsInRoleRegistry', 'WaitToFinish of IsInRoleRegistry'],
    ['HTTP 404 or status code 409 or status: 500', 'HTTP 404 or status code 409 or status: 500'],
    ['error code 17 or error 1062 or E1001', 'error code 17 or error 1062 or E1001'],
    ['ORA-00001 or errno=5', 'ORA-00001 or errno=5'],
    ['E11000 duplicate key', 'E11000 duplicate key'],
    ['status code 123456 or error: 12 or TYPE1001', 'status code <v> or error: <v>'],
    ['1 line of 12 lines', '<v> line of <v> line'],
    ['order 5 exists, 5 was, 5 status', 'order <v> exists, <v> was, <v> status'],
    ['unknown: 1, 2, 3', 'unknown: <v>'],
    ['unknown: ORD-1,ORD-2 and ORD-3', 'unknown: <v>'],
    ['unknown: ORD-1, INV-2', 'unknown: <v>'],
    ['bad at /items/1; worse; bad at /items/22', 'bad at /items/<v>; worse'],
    ['„Müller“ or “Ana” or « Zoë »', '<v>'],
    ['violates unique constraint "orders_key"', 'violates unique constraint "orders_key"'],
    ['column "a" of relation "b_2026_11"', 'column "a" of relation "b_<v>_<v>"'],
    [`undefined (reading 'total')`, `undefined (reading 'total')`],
    ['fields: (`email`)', 'fields: (`email`)'],
    [`for key 'users.email' or key 'bob'`, `for key 'users.email' or key <v>`],
    [`field 'bob@example.org' or field 'two words'`, 'field <v> or field <v>'],
    ['The "path" argument', 'The "path" argument'],
    ['"items[3].sku" is required', '"items[<v>].sku" is required'],
    ['[GET] "https://a.b/orders/5": no', '[GET] "https://<v>/orders/<v>": no'],
    [`with message "no queue 'a' of 'bob'"`, 'with message no queue <v> of <v>'],
    [`unstable 'a' or notable 'b'`, 'unstable <v> or notable <v>'],
    ['  a\n\t b  ', 'a b'],
    ['', ''],
  ])('%j becomes %j', (message, expected) => {
    expect(normalised(message)).toBe(expected)
  })

  test.each([
    ['42', '<v>'],
    ['a1b2', '<v>'],
    ['deadbeef', '<v>'],
    ['550e8400-e29b-41d4-a716-446655440000', '<v>'],
    ['2026-01-31T12:00:00Z', '<v>'],
    ['12:00:01', '<v>'],
    ['10.0.0.1:80', '<v>'],
    ['::1', '<v>'],
    ['+bob+x@example.org', '<v>'],
    ['"bob"', '<v>'],
    ['+V1StGXR8_Z5jdHi6B-myT', '<v>'],
  ])('every %j in it is replaced', (value, expected) => {
    expect(normalised(`${value} then ${value}`)).toBe(`${expected} then ${expected}`)
  })

  test('is limited before and after it is normalised', () => {
    expect(normalised(`${' '.repeat(1999)}ab`)).toBe('a')
    expect(normalised('no ab '.repeat(100))).toBe('no ab '.repeat(50))
    expect(normalised('y'.repeat(300))).toBe('y'.repeat(300))
  })

  test('is compared by 150 characters when it wraps another', () => {
    const wraps = (outer: string) => normalised(`${outer}; caused by Error: no tariff 5`)
    expect(wraps('z'.repeat(150))).toBe(`${'z'.repeat(150)}; caused by Error: no tariff <v>`)
    expect(wraps('z'.repeat(151))).toBe(wraps('z'.repeat(150)))
    expect(wraps('z'.repeat(149))).not.toBe(wraps('z'.repeat(150)))
  })

  test.each([
    ['queries', '/?'],
    ['places', '; line: '],
    ['values', ')=('],
    ['lists', '<v>, '],
    ['wide lists', 'a<v>, a'],
    ['segments', '; a'],
    ['capitals', 'AbC'],
    ['underscores', 'a_B'],
    ['months', 'Nov 15 20'],
    ['money', 'EUR 1,'],
    ['dotted frames', 'a.b'],
    ['hashes', '-a.'],
    ['double quotes', '"'],
    ['single quotes', `'a `],
    ['backticks', '`'],
    ['quotes and the words of JSON.parse', '" is not valid JSO'],
    ['hex', 'a1'],
    ['digits', '1'],
    ['dots', '1.'],
    ['colons', 'a:'],
    ['at signs', 'a@'],
    ['dashes', '-'],
    ['spaces', ' '],
    ['base64', '+/='],
    ['letters', 'a'],
    ['dates', '2026-01-01T'],
    ['frames', '\n    at a (/b.js'],
    ['aliases', ' [as '],
    ['brackets', ' ('],
  ])('100 kB of %s take no time', (_, part) => {
    const text = part.repeat(Math.ceil(100_000 / part.length))
    const hostile = { ...input, message: text, stack: `    at ${text}` }
    const ordinary = { ...input, message: ORDINARY, stack: `    at ${ORDINARY}` }
    expectFast(
      () => signatureOf(hostile),
      () => signatureOf(ordinary),
      5,
    )
  })
})

describe('the frame', () => {
  test.each([
    ['    at charge (/app/src/payments.ts:10:5)', 'charge payments.ts'],
    ['    at async charge (/app/src/payments.ts:10:5)', 'charge payments.ts'],
    ['    at async Promise.all (index 0)', undefined],
    ['    at Payments.charge [as run] (/app/payments.ts:10:5)', 'Payments.charge payments.ts'],
    ['    at new Charge (/app/payments.ts:10:5)', 'new Charge payments.ts'],
    ['    at /app/payments.ts:10:5', '<anonymous> payments.ts'],
    ['    at async file:///app/payments.ts:10:5', '<anonymous> payments.ts'],
    ['    at charge (file:///app/payments.ts?v=12:10:5)', 'charge payments.ts'],
    ['    at charge (C:\\app\\payments.ts:10:5)', 'charge payments.ts'],
    ['    at /home/My App (1)/payments.ts:10:5', '<anonymous> payments.ts'],
    ['    at charge (/home/My App (1)/payments.ts:10:5)', 'charge payments.ts'],
    ['    at eval (eval at load (/app/plugins.ts:1:1), <anonymous>:1:1)', 'eval plugins.ts'],
    ['    at charge (/app/dist/chunk-7QVYU63E.js:10:5)', 'charge chunk-<hash>.js'],
    ['    at charge (/app/dist/chunk-7QVYU63.js:10:5)', 'charge chunk-7QVYU63.js'],
    ['    at charge (/app/dist/index-DiwrgTda.js:10:5)', 'charge index-<hash>.js'],
    ['    at charge (/app/dist/main.4f2a9c1b0d.js:10:5)', 'charge main-<hash>.js'],
    ['    at charge (/app/src/order-handlers.ts:10:5)', 'charge order-handlers.ts'],
    ['    at charge (/app/src/order-Consumer.ts:10:5)', 'charge order-Consumer.ts'],
    ['    at xy (/app/dist/index.js:1:5)', '<anonymous> index.js'],
    ['    at run (/app/dist/index.js:1:5)', 'run index.js'],
    ['\tat com.acme.Orders.charge(Orders.java:42)', 'com.acme.Orders.charge'],
    ['\tat app//com.acme.Orders.<init>(Orders.java:42)', 'com.acme.Orders.<init>'],
    ['\tat com.acme.Orders.lambda$charge$3(Orders.java:42)', 'com.acme.Orders.lambda$charge$'],
    ['\tat java.base/java.util.ArrayList.get(ArrayList.java:427)', undefined],
    ['\tat org.springframework.aop.Proxy.call(Proxy.java:1)', undefined],
    ['\tat com.acme.Orders$$Lambda/0x00007f.run(Unknown Source)', undefined],
    ['\tat com.acme.Orders$$SpringCGLIB$$0.charge(<generated>)', undefined],
    ['   at Acme.Orders.Charge(Order order)', 'Acme.Orders.Charge'],
    ['   at Acme.Orders..ctor() in /src/Orders.cs:line 42', 'Acme.Orders..ctor'],
    ['   at Acme.Orders.<Charge>d__12.MoveNext()', 'Acme.Orders.<Charge>d__.MoveNext'],
    ['   at System.Linq.Enumerable.First[TSource](IEnumerable`1 source)', undefined],
    ['at charge (/app/payments.ts:10:5)', 'charge payments.ts'],
    ['    at Array.map (<anonymous>)', undefined],
    ['    at charge (native)', undefined],
    ['    at process.run (node:internal/process/task_queues:95:5)', undefined],
    ['    at node:internal/process/task_queues:95:5', undefined],
    ['    at charge (/app/node_modules/stripe/lib/stripe.js:1:1)', undefined],
    ['    at charge (C:\\app\\node_modules\\stripe\\stripe.js:1:1)', undefined],
    ['    at charge (/app/my_node_modules/stripe.js:1:1)', 'charge stripe.js'],
    ['Error: look at /app/payments.ts', undefined],
    ['', undefined],
  ])('of %j is %j', (line, expected) => {
    expect(frameOf(line)).toBe(expected)
  })

  test('is the first frame of the user’s own code', () => {
    const frame = frameOf(
      'Error: no',
      '    at JSON.parse (<anonymous>)',
      '    at request (node:http:1:1)',
      '    at post (/app/node_modules/client/index.js:1:1)',
      '    at charge (/app/src/payments.ts:10:5)',
      '    at handle (/app/src/orders.ts:3:3)',
    )
    expect(frame).toBe('charge payments.ts')
  })

  test('is not searched beyond 2 KiB', () => {
    const far = `${'    at a (node:x)\n'.repeat(200)}    at charge (/app/payments.ts:1:1)`
    expect(frameOf(far)).toBeUndefined()
  })
})

describe('similar failures', () => {
  const options: ClassifyOptions = { rules: [], handler: 'orders', includeStack: false, now: 0 }
  const signature = (error: unknown, handler = 'orders'): string =>
    classify(error, { ...options, handler }).signature
  const failed = (message: string): Error => new Error(message)

  const ids = fc.record({
    order: fc.nat(),
    uuid: fc.uuid(),
    hash: fc.string({
      unit: fc.constantFrom(...'0123456789abcdef'.split('')),
      minLength: 8,
      maxLength: 64,
    }),
    ip: fc.ipV4(),
    port: fc.integer({ min: 1, max: 65_535 }),
    at: fc.date({ min: new Date(0), max: new Date(4e12), noInvalidDate: true }),
    name: fc.string({ unit: 'grapheme-ascii' }).map((text) => text.replaceAll('"', '')),
  })
  const told = ({
    order,
    uuid,
    hash,
    ip,
    port,
    at,
    name,
  }: typeof ids extends fc.Arbitrary<infer T> ? T : never): string =>
    `order ${order} (${uuid}, ${hash}) at ${ip}:${port} on ${at.toISOString()} for "${name}"`

  test('have one signature for all ids, numbers, addresses, times and names', () => {
    fc.assert(
      fc.property(ids, ids, (a, b) => {
        expect(signature(failed(told(a)))).toBe(signature(failed(told(b))))
      }),
    )
  })

  test('have one signature even when their ids move the end of a long message', () => {
    const long = (ids: number, tail = 'closed ') =>
      `cannot merge ${'550e8400-e29b-41d4-a716-446655440000, '.repeat(ids)}because ${tail.repeat(80)}`
    const wrapped = (ids: number, root = 'no tariff') =>
      new Error(long(ids), { cause: new Error(root) })
    expect(signature(failed(long(2)))).toBe(signature(failed(long(12))))
    expect(signature(failed(long(2)))).not.toBe(signature(failed(long(2, 'locked '))))
    expect(signature(wrapped(2))).toBe(signature(wrapped(8)))
    expect(signature(wrapped(2))).not.toBe(signature(wrapped(2, 'no list')))
  })

  test('differ between handlers and between types', () => {
    class Other extends Error {}
    fc.assert(
      fc.property(fc.string(), (message) => {
        const error = failed(message)
        expect(signature(error, 'refunds')).not.toBe(signature(error, 'orders'))
        expect(signature(new Other(message))).not.toBe(signature(error))
      }),
    )
  })

  test('differ by the root cause of the chain', () => {
    const wrap = (cause: unknown): Error => new TypeError('fetch failed', { cause })
    class Refusal extends Error {}
    const signatures = [
      signature(wrap(new Error('bad port'))),
      signature(wrap(new Error('other side closed'))),
      signature(wrap(new Refusal('bad port'))),
      signature(wrap(Object.assign(new Error('bad port'), { code: 'ECONNREFUSED' }))),
    ]
    expect(new Set(signatures).size).toBe(4)
  })
})
