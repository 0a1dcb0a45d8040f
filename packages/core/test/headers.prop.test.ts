import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { FailureRecord, FailureCycle } from '../src/delivery.ts'
import { FIRST_CYCLE } from '../src/delivery.ts'
import { FAILURE_CLASSES } from '../src/failure.ts'
import { decodeHeaders, encodeHeaders, type WireState } from '../src/headers.ts'

/** Any complete characters. */
const word = fc.oneof(
  fc.string({ unit: 'binary', minLength: 1, maxLength: 300 }),
  fc.string({ unit: fc.constantFrom('%', '4', '1', 'é', '\n', 'a'), minLength: 1, maxLength: 20 }),
)
const time = fc.nat({ max: 999_999_999_999_999 })
const count = fc.nat({ max: 1_000_000 })
/** Any sequence of UTF-16 units, halves of surrogate pairs included. */
const anyText = fc
  .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 200 })
  .map((units) => String.fromCharCode(...units))

const attempt: fc.Arbitrary<FailureRecord> = fc.record({
  number: count,
  at: time,
  waitedMs: time,
  class: fc.constantFrom(...FAILURE_CLASSES),
  signature: word,
  code: fc.option(anyText, { nil: undefined }),
  type: fc.option(anyText, { nil: undefined }),
  message: anyText,
  counted: fc.boolean(),
})

/** No run is counted without a run. Time without runs is never written. */
const runs = fc.tuple(count, count, count, time).map(([one, other, unproven, waitedMs]) => ({
  attempts: Math.min(one, other),
  runs: Math.max(one, other),
  unproven: { runs: unproven, waitedMs: unproven === 0 ? 0 : waitedMs },
}))

const cycle: fc.Arbitrary<FailureCycle> = fc
  .record({
    number: fc.integer({ min: 1, max: 1_000_000 }),
    runs,
    firstFailedAt: fc.option(time, { nil: undefined }),
    lastDelayMs: time,
    remainingMs: time,
    history: fc.array(attempt, { maxLength: 5 }),
  })
  .map(({ runs: counts, ...rest }) => ({ ...rest, ...counts }))

const state: fc.Arbitrary<WireState> = fc.record(
  {
    id: word,
    key: word,
    source: word,
    replayId: fc.option(word, { nil: undefined }),
    replaces: word,
    cycle,
    reason: fc.option(word, { nil: undefined }),
  },
  { requiredKeys: ['id', 'key', 'source', 'replayId', 'cycle', 'reason'] },
)

function bytesOf(headers: Readonly<Record<string, string>>): number {
  return Object.entries(headers)
    .flat()
    .reduce((sum, one) => sum + Buffer.byteLength(one), 0)
}

describe('headers', () => {
  test('read back as what was written, for any state', () => {
    fc.assert(
      fc.property(state, (written) => {
        const { headers, truncated } = encodeHeaders(written, Number.POSITIVE_INFINITY)
        expect(truncated).toBe(0)
        expect(decodeHeaders(headers)).toEqual({
          ...written,
          key: written.key === written.id ? undefined : written.key,
          foreign: {},
          problems: [],
        })
      }),
    )
  })

  test('are printable ASCII for all failures', () => {
    fc.assert(
      fc.property(state, (written) => {
        for (const value of Object.values(encodeHeaders(written).headers)) {
          expect(value).toMatch(/^[\x20-\x7e]*$/)
        }
      }),
    )
  })

  test('fit any budget that has room for the fixed part, with the newest attempts', () => {
    fc.assert(
      fc.property(state, fc.nat({ max: 4_000 }), (written, room) => {
        const fixedBytes = bytesOf(encodeHeaders(written, 0).headers)
        const { headers, truncated } = encodeHeaders(written, fixedBytes + room)
        expect(bytesOf(headers)).toBeLessThanOrEqual(fixedBytes + room)
        expect(decodeHeaders(headers)).toMatchObject({
          cycle: { ...written.cycle, history: written.cycle.history.slice(truncated) },
          problems: [],
        })
      }),
    )
  })

  test('omit as few attempts as possible', () => {
    fc.assert(
      fc.property(state, fc.nat({ max: 4_000 }), (written, room) => {
        const budget = bytesOf(encodeHeaders(written, 0).headers) + room
        const { truncated } = encodeHeaders(written, budget)
        if (truncated === 0) return
        const oneMore = {
          ...written,
          cycle: { ...written.cycle, history: written.cycle.history.slice(truncated - 1) },
        }
        // Written completely, with one more attempt than fits: at most one digit of the dropped count is missing here.
        const { headers } = encodeHeaders(oneMore, Number.POSITIVE_INFINITY)
        expect(bytesOf(headers)).toBeGreaterThan(budget)
      }),
    )
  })

  test('never throw on garbage: it is reported, or it is valid', () => {
    const names = [
      'version',
      'id',
      'key',
      'source',
      'attempt',
      'cycle',
      'first-failed-at',
      'delay',
      'remaining',
      'history',
      'reason',
      'replay-id',
    ].map((name) => `redrive-${name}`)
    const value = fc.oneof(
      fc.anything({ withBigInt: true, withNullPrototype: true }),
      anyText,
      fc.constantFrom('1', '0', '[0]', '[]', '[0,[1,2,"unknown","s",null,"m"]]', '999999999999999'),
      fc.json(),
    )
    const name = fc.oneof(fc.constantFrom(...names, '__proto__', 'constructor'), fc.string())
    fc.assert(
      fc.property(fc.dictionary(name, value), fc.boolean(), (garbage, versioned) => {
        const raw = versioned ? { ...garbage, 'redrive-version': '1' } : garbage
        const { cycle: read, problems, foreign } = decodeHeaders(raw)
        const asFirst = { ...FIRST_CYCLE, number: read.number }
        expect(read).toEqual(problems.length > 0 ? asFirst : read)
        expect(Object.keys(foreign)).toEqual(
          Object.keys(raw).filter((one) => !one.startsWith('redrive-')),
        )
      }),
      { numRuns: 500 },
    )
  })
})
