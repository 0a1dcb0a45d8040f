import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type ClassifyOptions, classify } from '../src/classify/classify.ts'
import { type SignatureInput, signatureOf, signatureParts } from '../src/signature.ts'

const input: SignatureInput = {
  class: 'transient',
  type: 'TypeError',
  code: 'ECONNREFUSED',
  message: 'connect ECONNREFUSED 10.0.0.1:5432',
  stack: '    at charge (/app/src/payments.ts:10:5)',
  handler: 'orders',
}

function normalised(message: string): string {
  return signatureParts({ ...input, message }).message
}

function frameOf(...lines: readonly string[]): string | undefined {
  return signatureParts({ ...input, stack: lines.join('\n') }).frame
}

describe('the signature', () => {
  test('is the version and sixteen hex digits, the same in every later release', () => {
    expect(signatureOf(input)).toBe('1-6b37a1cd04f2e0c2')
  })

  test('shows what it is made of', () => {
    expect(signatureParts(input)).toEqual({
      version: 1,
      class: 'transient',
      type: 'TypeError',
      code: 'ECONNREFUSED',
      message: 'connect ECONNREFUSED <ip>',
      frame: 'charge payments.ts',
      handler: 'orders',
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

  test('keeps the borders between its parts', () => {
    const a = signatureOf({ ...input, type: 'A', code: 'B C' })
    expect(signatureOf({ ...input, type: 'A B', code: 'C' })).not.toBe(a)
  })

  test('is not changed by the line, the directory or the machine', () => {
    const stack =
      '    at charge (file:///C:/build/42/dist/payments.ts:99:1)\n    at other (/x/y.ts:1:1)'
    expect(signatureOf({ ...input, stack })).toBe(signatureOf(input))
  })
})

describe('the message', () => {
  test.each([
    ['order 12345 not found', 'order <n> not found'],
    ['order 1234567890 not found', 'order <n> not found'],
    ['-1.5e3 is below 0', '-<n>.<n> is below <n>'],
    ['order_42 and order-42 and user42', 'order_<n> and order-<n> and user<n>'],
    ['took 30s of 5000ms', 'took <n>s of <n>ms'],
    ['id a1b2 and 1a2 and cus_Nff2Hib', 'id <n> and <n> and cus_<n>'],
    ['id ab12c and 12a3 and 1ab2', 'id <n> and <n> and <n>'],
    ['0x1F at 0xdeadbeef', '<n> at <n>'],
    ['commit deadbeef by ord_cafebabe1', 'commit <n> by ord_<n>'],
    ['decade facade', 'decade facade'],
    ['key 507f1f77bcf86cd799439011.', 'key <n>.'],
    ['uuid 550e8400-e29b-41d4-a716-446655440000!', 'uuid <uuid>!'],
    ['order_550E8400-E29B-41D4-A716-446655440000', 'order_<uuid>'],
    ['at 2026-01-31', 'at <time>'],
    ['at 2026-01-31T12:00Z', 'at <time>'],
    ['at 2026-01-31 12:00:01,123 today', 'at <time> today'],
    ['at 2026-01-31T12:00:01.123456789+02:00', 'at <time>'],
    ['at 2026-01-31T12:00:01-0200', 'at <time>'],
    ['at 12:00:01 or 9:00:01.5', 'at <time> or <time>'],
    ['at 9:00:01.123 or 9:00:01,123456789', 'at <time> or <time>'],
    ['connect 127.0.0.1:5432.', 'connect <ip>.'],
    ['connect 127.0.0.1 now', 'connect <ip> now'],
    ['connect ::1:5432', 'connect <ip>'],
    ['connect 2001:DB8::ff00:42:8329', 'connect <ip>'],
    ['version 1.2.3', 'version <n>.<n>.<n>'],
    ['version 1.2.3.4.5', 'version <n>.<n>.<n>.<n>.<n>'],
    ['mail to bob.smith+tag@example.co.uk failed', 'mail to <email> failed'],
    [`field "name" or 'mail' or \`age\` is bad`, 'field <str> or <str> or <str> is bad'],
    [`"" is empty`, '<str> is empty'],
    [`can't and won't read 'it' today`, `can't and won't read <str> today`],
    ['token eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9 expired', 'token <token> expired'],
    ['token V1StGXR8_Z5jdHi6B-myT expired', 'token <token> expired'],
    ['token abcdefghij0klmnopqr= end', 'token <token> end'],
    ['token abcdefghij12klmnopqr= end', 'token <token> end'],
    ['token abcdefghij0klmnopqr end', 'token <n> end'],
    ['AbstractSingletonProxyFactoryBean failed', 'AbstractSingletonProxyFactoryBean failed'],
    ['Order-Service-Worker-20260101', 'Order-Service-Worker-<n>'],
    [
      `Unexpected token 'a', "{"a": a}" is not valid JSON`,
      'Unexpected token <str>, <str> is not valid JSON',
    ],
    [
      `Unexpected token 'a', "{"a":\na}" is not valid JSON`,
      'Unexpected token <str>, <str> is not valid JSON',
    ],
    [
      `Unexpected token 'b', ..."x": "y" b"... is not valid JSON`,
      'Unexpected token <str>, ...<str>... is not valid JSON',
    ],
    ['  a\n\t b  ', 'a b'],
    ['', ''],
  ])('%j becomes %j', (message, expected) => {
    expect(normalised(message)).toBe(expected)
  })

  test.each([
    ['42', '<n>'],
    ['a1b2', '<n>'],
    ['deadbeef', '<n>'],
    ['550e8400-e29b-41d4-a716-446655440000', '<uuid>'],
    ['2026-01-31T12:00:00Z', '<time>'],
    ['12:00:01', '<time>'],
    ['10.0.0.1:80', '<ip>'],
    ['::1', '<ip>'],
    ['+bob+x@example.org', '<email>'],
    ['"bob"', '<str>'],
    ['+V1StGXR8_Z5jdHi6B-myT', '<token>'],
  ])('every %j in it is replaced', (value, expected) => {
    expect(normalised(`${value} and ${value}`)).toBe(`${expected} and ${expected}`)
  })

  test('is bounded before it is normalised and after', () => {
    expect(normalised(`${' '.repeat(499)}ab`)).toBe('a')
    expect(normalised('x '.repeat(250))).toBe('x '.repeat(150))
    expect(normalised('y'.repeat(300))).toBe('y'.repeat(300))
  })

  test.each([
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
    signatureOf(hostile)
    const times = Array.from({ length: 5 }, () => {
      const start = performance.now()
      signatureOf(hostile)
      return performance.now() - start
    })
    // The best of five: a busy machine must not fail it, a slow pattern must.
    expect(Math.min(...times)).toBeLessThan(5)
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

  test('is the first of the user’s own code', () => {
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

  test('beyond 2 KiB is not looked for', () => {
    const far = `${'    at a (node:x)\n'.repeat(200)}    at charge (/app/payments.ts:1:1)`
    expect(frameOf(far)).toBeUndefined()
  })
})

describe('failures that are alike', () => {
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

  test('have one signature whatever ids, numbers, addresses, times and names they tell', () => {
    fc.assert(
      fc.property(ids, ids, (a, b) => {
        expect(signature(failed(told(a)))).toBe(signature(failed(told(b))))
      }),
    )
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

  test('differ by what lies at the bottom of the chain', () => {
    const wrap = (cause: unknown): Error => new TypeError('fetch failed', { cause })
    class Refused extends Error {}
    const signatures = [
      signature(wrap(new Error('bad port'))),
      signature(wrap(new Error('other side closed'))),
      signature(wrap(new Refused('bad port'))),
      signature(wrap(Object.assign(new Error('bad port'), { code: 'ECONNREFUSED' }))),
    ]
    expect(new Set(signatures).size).toBe(4)
  })
})
