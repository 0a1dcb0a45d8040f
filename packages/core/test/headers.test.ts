import { describe, expect, test } from 'vitest'
import { FIRST_CYCLE } from '../src/delivery.ts'
import {
  decodeHeaders,
  encodeHeaders,
  HEADER_BUDGET_BYTES,
  HEADER_PREFIX,
  type WireState,
} from '../src/headers.ts'
import { aCycle, anAttempt, NOW } from './fixtures.ts'

function aState(change: Partial<WireState> = {}): WireState {
  return {
    id: 'm1',
    key: 'm1',
    source: 'orders',
    replayId: undefined,
    cycle: FIRST_CYCLE,
    reason: undefined,
    ...change,
  }
}

/** Counts bytes like a broker: every name and value. */
function bytesOf(headers: Readonly<Record<string, string>>): number {
  return Object.entries(headers)
    .flat()
    .reduce((sum, one) => sum + Buffer.byteLength(one), 0)
}

function rowsOf(headers: Readonly<Record<string, string>>): readonly unknown[] {
  return JSON.parse(headers['redrive-history'] ?? 'null') as readonly unknown[]
}

const attempts = [1, 2, 3].map((number) =>
  anAttempt({ number, at: NOW + number, message: `failure ${number}` }),
)

/** Few headers, all valid. */
const sound = { 'redrive-version': '1', 'redrive-attempt': '2', 'redrive-cycle': '3' }

describe('headers of a message', () => {
  test('contain only the known fields of a first attempt', () => {
    expect(encodeHeaders(aState())).toEqual({
      headers: {
        'redrive-version': '1',
        'redrive-id': 'm1',
        'redrive-source': 'orders',
        'redrive-attempt': '0',
      },
      truncated: 0,
    })
  })

  test('contain all known fields', () => {
    const state = aState({
      key: 'order-7',
      replayId: 'replay-1',
      replaces: 'order-6',
      reason: 'attempts_exhausted',
      handler: 'charge é',
      cycle: {
        number: 2,
        attempts: 2,
        runs: 9,
        unproven: { runs: 4, waitedMs: 61_000.4 },
        firstFailedAt: NOW,
        lastDelayMs: 250,
        remainingMs: 900,
        history: [
          anAttempt({ number: 1, at: NOW, class: 'transient', signature: 's0', code: undefined }),
          anAttempt({ number: 2, at: NOW + 5, waitedMs: 4.6, message: 'oh' }),
          anAttempt({ number: 3, at: NOW + 9, type: undefined, message: 'oh', counted: false }),
        ],
      },
    })
    expect(encodeHeaders(state)).toEqual({
      headers: {
        'redrive-version': '1',
        'redrive-id': 'm1',
        'redrive-key': 'order-7',
        'redrive-source': 'orders',
        'redrive-attempt': '2',
        'redrive-runs': '9',
        'redrive-unproven-runs': '4',
        'redrive-unproven-ms': '61000',
        'redrive-cycle': '2',
        'redrive-first-failed-at': '1700000000000',
        'redrive-delay': '250',
        'redrive-remaining': '900',
        'redrive-class': 'unknown',
        'redrive-signature': 's1',
        'redrive-reason': 'attempts_exhausted',
        'redrive-handler': 'charge %C3%A9',
        'redrive-replay-id': 'replay-1',
        'redrive-replaces': 'order-6',
        'redrive-history':
          '[0,[1,1700000000000,"transient","s0",null,"no","TypeError",0,1],' +
          '[2,1700000000005,"unknown","s1","E1","oh","TypeError",5,1],' +
          '[3,1700000000009,"unknown","s1","E1","oh",null,0,0]]',
      },
      truncated: 0,
    })
  })

  test('read back as what was written', () => {
    const state = aState({
      key: 'order-7',
      replayId: 'replay-1',
      replaces: 'order-6',
      reason: 'too_old',
      handler: 'charge “é”',
      cycle: {
        number: 2,
        attempts: 3,
        runs: 5,
        unproven: { runs: 1, waitedMs: 7 },
        firstFailedAt: 0,
        lastDelayMs: 5,
        remainingMs: 6,
        history: attempts,
      },
    })
    expect(decodeHeaders(encodeHeaders(state).headers)).toEqual({
      ...state,
      foreign: {},
      problems: [],
    })
  })

  test('without runs have as many as counted attempts, and never fewer', () => {
    const plain = encodeHeaders(aState({ cycle: aCycle({ attempts: 3, runs: 3 }) })).headers
    expect(plain).not.toHaveProperty('redrive-runs')
    expect(plain).not.toHaveProperty('redrive-unproven-runs')
    expect(plain).not.toHaveProperty('redrive-unproven-ms')
    expect(decodeHeaders(plain).cycle.runs).toBe(3)
    expect(decodeHeaders({ ...plain, 'redrive-runs': '2' }).cycle.runs).toBe(3)
    expect(decodeHeaders({ ...plain, 'redrive-runs': '4' }).cycle.runs).toBe(4)
  })

  test('name the handler, at most 255 characters of it, and no empty one', () => {
    const handlerIn = (handler: string) =>
      decodeHeaders(encodeHeaders(aState({ handler })).headers).handler
    expect(handlerIn('h'.repeat(255))).toHaveLength(255)
    expect(handlerIn('h'.repeat(256))).toHaveLength(255)
    expect(encodeHeaders(aState({ handler: '' })).headers).not.toHaveProperty('redrive-handler')
    expect(decodeHeaders(encodeHeaders(aState()).headers)).not.toHaveProperty('handler')
  })

  test('all have the prefix', () => {
    expect(HEADER_PREFIX).toBe('redrive-')
    const { headers } = encodeHeaders(aState({ key: 'k', cycle: aCycle({ history: attempts }) }))
    expect(Object.keys(headers).every((name) => name.startsWith('redrive-'))).toBe(true)
  })

  test('contain the key of the replaced message, also when that key is empty', () => {
    const { headers } = encodeHeaders(aState({ replaces: '' }))
    expect(headers['redrive-replaces']).toBe('')
    expect(decodeHeaders(headers).replaces).toBe('')
    expect(decodeHeaders(encodeHeaders(aState()).headers)).not.toHaveProperty('replaces')
  })

  test('never shorten the id, a key or the source: two messages must not become one', () => {
    const long = {
      id: 'i'.repeat(9_000),
      key: 'k'.repeat(9_000),
      source: 's'.repeat(9_000),
      replaces: 'r'.repeat(9_000),
    }
    const { headers } = encodeHeaders(aState(long), 0)
    expect(headers['redrive-id']).toBe(long.id)
    expect(headers['redrive-key']).toBe(long.key)
    expect(headers['redrive-source']).toBe(long.source)
    expect(decodeHeaders(headers)).toMatchObject(long)
  })

  test.each<[plain: string, written: string]>([
    [' ~!$&a', ' ~!$&a'],
    ['100%', '100%25'],
    ['%41', '%2541'],
    ['a\r\nredrive-id: x', 'a%0D%0Aredrive-id: x'],
    ['\u001f\u007f', '%1F%7F'],
    ['é€', '%C3%A9%E2%82%AC'],
    ['a😀b', 'a%F0%9F%98%80b'],
  ])('write %j as %j outside the history, and read it back', (plain, written) => {
    const state = aState({
      id: plain,
      key: `${plain}k`,
      source: plain,
      replayId: plain,
      replaces: plain,
      reason: plain,
      cycle: aCycle({ history: [anAttempt({ signature: plain })] }),
    })
    const { headers } = encodeHeaders(state)
    expect(headers).toMatchObject({
      'redrive-id': written,
      'redrive-key': `${written}k`,
      'redrive-source': written,
      'redrive-replay-id': written,
      'redrive-replaces': written,
      'redrive-reason': written,
      'redrive-signature': written,
    })
    expect(decodeHeaders(headers)).toEqual({ ...state, foreign: {}, problems: [] })
  })

  test.each(['\ud800', '\udbff', '\udc00', '\udfff'])(
    'write half of a surrogate pair, %j, as the sign for an unknown character',
    (lone) => {
      const { headers } = encodeHeaders(aState({ id: `a${lone}b` }))
      expect(headers['redrive-id']).toBe('a%EF%BF%BDb')
      expect(decodeHeaders(headers).id).toBe('a\ufffdb')
    },
  )

  test('contain the stack when it is given, and read it back', () => {
    const stack = '    at charge (/app/é.ts:1:2)\n    at run (/app/run.ts:3:4)'
    const { headers } = encodeHeaders(aState({ stack }))
    expect(headers['redrive-stack']).toBe(
      '    at charge (/app/%C3%A9.ts:1:2)%0A    at run (/app/run.ts:3:4)',
    )
    expect(decodeHeaders(headers).stack).toBe(stack)
    expect('stack' in decodeHeaders(encodeHeaders(aState()).headers)).toBe(false)
  })

  test('write times in whole milliseconds, and never shorten a wait', () => {
    const cycle = aCycle({ firstFailedAt: 1.4, remainingMs: 2.1 })
    expect(encodeHeaders(aState({ cycle })).headers).toMatchObject({
      'redrive-first-failed-at': '1',
      'redrive-remaining': '3',
    })
  })

  test('limit the message of an attempt to 200 characters', () => {
    const messageOf = (length: number) => {
      const cycle = aCycle({ history: [anAttempt({ message: 'x'.repeat(length) })] })
      return decodeHeaders(encodeHeaders(aState({ cycle })).headers).cycle.history[0]?.message
    }
    expect(messageOf(200)).toBe('x'.repeat(200))
    expect(messageOf(201)).toBe('x'.repeat(200))
  })

  test('encode any message in ASCII', () => {
    const message = 'é€😀\u0000\n\u007f\ud800"\\~ '
    const cycle = aCycle({ history: [anAttempt({ message })] })
    const { headers } = encodeHeaders(aState({ cycle }))
    expect(headers['redrive-history']).toBe(
      '[0,[1,1699999999000,"unknown","s1","E1","\\u00e9\\u20ac\\ud83d\\ude00\\u0000\\n\\u007f\\ud800\\"\\\\~ ","TypeError",0,1]]',
    )
    expect(decodeHeaders(headers).cycle.history[0]?.message).toBe(message)
  })
})

describe('headers within a budget', () => {
  const state = aState({ cycle: aCycle({ attempts: 3, history: attempts }) })
  const whole = encodeHeaders(state).headers
  const { 'redrive-history': _, ...fixed } = whole

  test('are whole when they fit exactly', () => {
    expect(encodeHeaders(state, bytesOf(whole))).toEqual({ headers: whole, truncated: 0 })
  })

  test('drop the oldest failure first when they are one byte too long, and record it', () => {
    const { headers, truncated } = encodeHeaders(state, bytesOf(whole) - 1)
    expect(truncated).toBe(1)
    expect(rowsOf(headers)).toEqual([
      1,
      [2, NOW + 2, 'unknown', 's1', 'E1', 'failure 2', 'TypeError', 0, 1],
      [3, NOW + 3, 'unknown', 's1', 'E1', 'failure 3', 'TypeError', 0, 1],
    ])
    expect(decodeHeaders(headers).cycle.history).toEqual(attempts.slice(1))
  })

  test('drop as many as necessary', () => {
    const two = encodeHeaders(state, bytesOf(whole) - 1).headers
    const { headers, truncated } = encodeHeaders(state, bytesOf(two) - 1)
    expect(truncated).toBe(2)
    expect(rowsOf(headers)).toEqual([
      2,
      [3, NOW + 3, 'unknown', 's1', 'E1', 'failure 3', 'TypeError', 0, 1],
    ])
  })

  test('still contain the number of dropped failures when none fits', () => {
    const noted = { ...fixed, 'redrive-history': '[3]' }
    expect(encodeHeaders(state, bytesOf(noted))).toEqual({ headers: noted, truncated: 3 })
    expect(decodeHeaders(noted).cycle.history).toEqual([])
    expect(decodeHeaders(noted).problems).toEqual([])
  })

  test('keep the required fields for every budget', () => {
    const noted = bytesOf({ ...fixed, 'redrive-history': '[3]' })
    for (const budget of [noted - 1, bytesOf(fixed), 0, -1]) {
      expect(encodeHeaders(state, budget)).toEqual({ headers: fixed, truncated: 3 })
    }
  })

  test('omit the stack when it does not fit, and only the stack', () => {
    const stacked = { ...state, stack: 'at x' }
    const all = encodeHeaders(stacked).headers
    expect(all).toEqual({ ...whole, 'redrive-stack': 'at x' })
    expect(encodeHeaders(stacked, bytesOf(all))).toEqual({ headers: all, truncated: 0 })
    expect(encodeHeaders(stacked, bytesOf(all) - 1)).toEqual({ headers: whole, truncated: 0 })
  })

  test('keep the stack when the history does not fit but the stack does', () => {
    const stacked = { ...state, stack: 'x' }
    const { headers, truncated } = encodeHeaders(stacked, bytesOf(fixed) + 14)
    expect(truncated).toBe(3)
    expect(headers).toEqual({ ...fixed, 'redrive-stack': 'x' })
  })

  test('count the digits of the number of dropped failures', () => {
    const history = Array.from({ length: 12 }, (_, index) => anAttempt({ number: index + 1 }))
    const many = aState({ cycle: aCycle({ history }) })
    const none = { ...encodeHeaders(many, 0).headers, 'redrive-history': '[12]' }
    expect(encodeHeaders(many, bytesOf(none))).toEqual({ headers: none, truncated: 12 })
    expect(encodeHeaders(many, bytesOf(none) - 1).headers).not.toHaveProperty('redrive-history')
    for (let dropped = 0; dropped < 12; dropped += 1) {
      const rows = [dropped, ...rowsOf(encodeHeaders(many).headers).slice(1 + dropped)]
      const exact = { ...none, 'redrive-history': JSON.stringify(rows) }
      expect(encodeHeaders(many, bytesOf(exact))).toEqual({ headers: exact, truncated: dropped })
    }
  })

  test('keep class and signature of the last failure even without any history', () => {
    const { headers } = encodeHeaders(state, 0)
    expect(headers).toMatchObject({ 'redrive-class': 'unknown', 'redrive-signature': 's1' })
  })

  test('have 8 KiB by default', () => {
    expect(HEADER_BUDGET_BYTES).toBe(8_192)
    const history = Array.from({ length: 100 }, (_, index) =>
      anAttempt({ number: index + 1, message: 'x'.repeat(200) }),
    )
    const { headers, truncated } = encodeHeaders(aState({ cycle: aCycle({ history }) }))
    expect(truncated).toBeGreaterThan(0)
    expect(bytesOf(headers)).toBeLessThanOrEqual(8_192)
    expect(decodeHeaders(headers).cycle.history.at(-1)?.number).toBe(100)
    expect(decodeHeaders(headers).cycle.history).toHaveLength(100 - truncated)
  })

  test.each(['\u007f', '\u0080', '\u07ff', '\u0800', '\uffff', '\u{10000}', '\ud800', 'aé€😀'])(
    'count the same bytes as a broker, also for %j',
    (source) => {
      const some = aState({ source, cycle: aCycle({ attempts: 3, history: attempts }) })
      const full = encodeHeaders(some, Number.POSITIVE_INFINITY).headers
      expect(encodeHeaders(some, bytesOf(full)).truncated).toBe(0)
      expect(encodeHeaders(some, bytesOf(full) - 1).truncated).toBe(1)
    },
  )
})

describe('reading headers', () => {
  test('of a message without Redrive headers finds nothing and no problem', () => {
    expect(decodeHeaders({ traceparent: '00-1', 'x-retry': 5 })).toEqual({
      id: undefined,
      key: undefined,
      source: undefined,
      replayId: undefined,
      reason: undefined,
      cycle: FIRST_CYCLE,
      foreign: { traceparent: '00-1', 'x-retry': 5 },
      problems: [],
    })
  })

  test("keeps the producer's headers unchanged", () => {
    const value = Buffer.from('x')
    const { foreign } = decodeHeaders({
      ...sound,
      'x-a': value,
      redrive: 'not ours',
      'Redrive-Id': 1,
    })
    expect(Object.entries(foreign)).toEqual([
      ['x-a', value],
      ['redrive', 'not ours'],
      ['Redrive-Id', 1],
    ])
    expect(foreign['x-a']).toBe(value)
  })

  test('uses the values of a first attempt for missing headers', () => {
    expect(decodeHeaders({ 'redrive-version': '1' })).toMatchObject({
      cycle: FIRST_CYCLE,
      problems: [],
    })
  })

  test('without a version reads the identity of the message, and nothing about its attempts', () => {
    const decoded = decodeHeaders({ 'redrive-id': 'm1', 'redrive-attempt': '4' })
    expect(decoded).toMatchObject({ id: 'm1', cycle: FIRST_CYCLE, problems: [] })
  })

  test('of a newer version reports it, keeps the cycle number and counts a first attempt', () => {
    const decoded = decodeHeaders({ ...sound, 'redrive-version': '2', 'redrive-id': 'm1' })
    expect(decoded).toMatchObject({
      id: 'm1',
      cycle: { ...FIRST_CYCLE, number: 3 },
      problems: ["redrive-version: '2' is not supported by this release"],
    })
  })

  test('of an invalid version shows only the beginning of it', () => {
    expect(decodeHeaders({ 'redrive-version': 'x'.repeat(99) }).problems).toEqual([
      `redrive-version: '${'x'.repeat(40)}…' is not supported by this release`,
    ])
  })

  test('keeps a text with a percent sign that encodes nothing', () => {
    expect(decodeHeaders({ 'redrive-id': '100%', 'redrive-key': '%zz%41' })).toMatchObject({
      id: '100%',
      key: '%zz%41',
      problems: [],
    })
  })

  test('counts cycles from 1, even when the header is lower', () => {
    expect(decodeHeaders({ ...sound, 'redrive-cycle': '0' }).cycle.number).toBe(1)
    expect(decodeHeaders({ ...sound, 'redrive-cycle': '1' }).cycle.number).toBe(1)
    expect(decodeHeaders({ ...sound, 'redrive-cycle': '2' }).cycle.number).toBe(2)
  })

  test.each<[string, unknown, string]>([
    ['redrive-attempt', 'x', 'redrive-attempt: expected a whole number'],
    ['redrive-attempt', '', 'redrive-attempt: expected a whole number'],
    ['redrive-attempt', '-1', 'redrive-attempt: expected a whole number'],
    ['redrive-attempt', '1.5', 'redrive-attempt: expected a whole number'],
    ['redrive-attempt', '1 ', 'redrive-attempt: expected a whole number'],
    ['redrive-attempt', 'a1', 'redrive-attempt: expected a whole number'],
    ['redrive-attempt', '1000001', 'redrive-attempt: 1000001 is out of range'],
    ['redrive-attempt', 4, 'redrive-attempt: expected text, got number'],
    ['redrive-attempt', null, 'redrive-attempt: expected text, got object'],
    ['redrive-attempt', '1'.repeat(16), 'redrive-attempt: expected a whole number'],
    ['redrive-delay', 'x', 'redrive-delay: expected a whole number'],
    ['redrive-first-failed-at', 'x', 'redrive-first-failed-at: expected a whole number'],
    ['redrive-remaining', 'x', 'redrive-remaining: expected a whole number'],
    ['redrive-history', 'x', 'redrive-history: cannot be parsed'],
    ['redrive-history', '{}', 'redrive-history: cannot be parsed'],
    ['redrive-history', 'null', 'redrive-history: cannot be parsed'],
    ['redrive-history', '[0,1]', 'redrive-history: cannot be parsed'],
    ['redrive-history', '[0,{}]', 'redrive-history: cannot be parsed'],
    ['redrive-history', '[0,[1,2,"unknown"', 'redrive-history: cannot be parsed'],
    ['redrive-history', Buffer.from('[0]'), 'redrive-history: expected text, got object'],
    ['redrive-anything', 1, 'redrive-anything: expected text, got number'],
  ])('%s: %j counts as a first attempt', (name, value, problem) => {
    expect(decodeHeaders({ ...sound, [name]: value })).toMatchObject({
      cycle: { ...FIRST_CYCLE, number: 3 },
      problems: [problem],
    })
  })

  test.each<[string, unknown]>([
    ['number', ['1', 2, 'unknown', 's', null, 'm']],
    ['time', [1, '2', 'unknown', 's', null, 'm']],
    ['class', [1, 2, 'flaky', 's', null, 'm']],
    ['signature', [1, 2, 'unknown', 3, null, 'm']],
    ['code', [1, 2, 'unknown', 's', 4, 'm']],
    ['missing code', [1, 2, 'unknown', 's']],
    ['message', [1, 2, 'unknown', 's', null, 5]],
    ['type', [1, 2, 'unknown', 's', null, 'm', 6]],
    ['wait', [1, 2, 'unknown', 's', null, 'm', null, '7']],
  ])('a history row with a wrong %s invalidates the history', (_, row) => {
    const good = [1, 2, 'unknown', 's', null, 'm']
    const history = JSON.stringify([0, good, row])
    expect(decodeHeaders({ ...sound, 'redrive-history': history })).toMatchObject({
      cycle: { ...FIRST_CYCLE, number: 3 },
      problems: ['redrive-history: cannot be parsed'],
    })
    const alone = JSON.stringify([0, good])
    expect(decodeHeaders({ ...sound, 'redrive-history': alone }).cycle.history).toEqual([
      anAttempt({
        number: 1,
        at: 2,
        signature: 's',
        code: undefined,
        type: undefined,
        message: 'm',
      }),
    ])
  })

  test('a cycle that cannot be parsed is the first one', () => {
    expect(decodeHeaders({ ...sound, 'redrive-cycle': 'x' })).toMatchObject({
      cycle: FIRST_CYCLE,
      problems: ['redrive-cycle: expected a whole number'],
    })
    expect(decodeHeaders({ ...sound, 'redrive-cycle': '1000001' })).toMatchObject({
      cycle: FIRST_CYCLE,
      problems: ['redrive-cycle: 1000001 is out of range'],
    })
  })

  test('accepts the largest valid numbers', () => {
    const headers = {
      'redrive-version': '1',
      'redrive-cycle': '1000000',
      'redrive-attempt': '1000000',
      'redrive-first-failed-at': '9'.repeat(15),
      'redrive-delay': '9'.repeat(15),
      'redrive-remaining': '9'.repeat(15),
    }
    expect(decodeHeaders(headers)).toMatchObject({
      cycle: {
        number: 1_000_000,
        attempts: 1_000_000,
        firstFailedAt: 999_999_999_999_999,
        lastDelayMs: 999_999_999_999_999,
        remainingMs: 999_999_999_999_999,
      },
      problems: [],
    })
  })

  test('lists every problem', () => {
    const { problems } = decodeHeaders({
      'redrive-version': '9',
      'redrive-key': 1,
      'redrive-attempt': 'x',
      'redrive-history': 'x',
    })
    expect(problems).toEqual([
      'redrive-key: expected text, got number',
      "redrive-version: '9' is not supported by this release",
      'redrive-attempt: expected a whole number',
      'redrive-history: cannot be parsed',
    ])
  })

  test('is safe with names that have a meaning in JavaScript', () => {
    const raw = JSON.parse(
      '{"__proto__": {"polluted": true}, "constructor": "c", "toString": "t", "redrive-__proto__": "x"}',
    ) as Record<string, unknown>
    const decoded = decodeHeaders(raw)
    expect(Object.keys(decoded.foreign)).toEqual(['__proto__', 'constructor', 'toString'])
    expect(decoded.foreign['__proto__']).toEqual({ polluted: true })
    expect(decoded.foreign['polluted']).toBeUndefined()
    expect(decoded.problems).toEqual([])
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })
})

describe('the trace of a run', () => {
  const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

  test('is kept with its failure, and of the cycle before in a separate header', () => {
    const cycle = aCycle({ number: 2, history: [anAttempt({ trace }), anAttempt()], trace })
    const { headers } = encodeHeaders(aState({ cycle }))
    expect(headers['redrive-trace']).toBe(trace)
    const decoded = decodeHeaders(headers).cycle
    expect(decoded.trace).toBe(trace)
    expect(decoded.history.map((one) => one.trace)).toEqual([trace, undefined])
    expect('trace' in (decoded.history[1] ?? {})).toBe(false)
  })

  test.each(['', '00-zz', `${trace}0`, `0${trace}`, trace.toUpperCase()])(
    'counts as absent when it is "%s"',
    (invalid) => {
      const cycle = aCycle({ number: 2, history: [anAttempt({ trace: invalid })], trace: invalid })
      const { headers } = encodeHeaders(aState({ cycle }))
      const decoded = decodeHeaders(headers)
      expect(decoded.problems).toEqual([])
      expect('trace' in decoded.cycle).toBe(false)
      expect('trace' in (decoded.cycle.history[0] ?? {})).toBe(false)
    },
  )
})
