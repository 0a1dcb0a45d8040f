import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FIRST_CYCLE } from '@redrive/core'
import { aFailure } from '@redrive/dev-support'
import {
  parseStoredDeadLetter,
  type StoredDeadLetter,
  serializeStoredDeadLetter,
} from '../src/index.ts'

const deadLetter = (
  bytes: Uint8Array,
  changes: Partial<StoredDeadLetter> = {},
): StoredDeadLetter => ({
  id: 'e/loki',
  sink: 'loki',
  event: {
    id: 'e',
    key: 'k',
    type: 'order.paid',
    lane: undefined,
    at: 1,
    bytes,
    contentType: 'application/json',
    headers: { a: 'b' },
  },
  reason: 'breaker_open',
  failure: aFailure({ class: 'transient' }),
  cycle: FIRST_CYCLE,
  job: undefined,
  savedAt: 2,
  ...changes,
})

describe('a stored dead letter', () => {
  it('is restored byte for byte, for any bytes, on one line', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const text = serializeStoredDeadLetter(deadLetter(bytes))
        expect(text).not.toContain('\n')
        expect(Buffer.from(parseStoredDeadLetter(text).event.bytes)).toEqual(Buffer.from(bytes))
      }),
    )
  })

  it('is restored with every field, including undefined ones', () => {
    for (const one of [
      deadLetter(Buffer.from('x')),
      deadLetter(Buffer.from('x'), {
        job: 'nightly',
        cycle: { ...FIRST_CYCLE, attempts: 3, firstFailedAt: 7 },
      }),
    ]) {
      const { event, ...rest } = parseStoredDeadLetter(serializeStoredDeadLetter(one))
      expect({ ...rest, event: { ...event, bytes: Buffer.from(event.bytes) } }).toStrictEqual({
        ...one,
        event: { ...one.event, bytes: Buffer.from(one.event.bytes) },
      })
    }
  })

  it('is readable when it is text, with its byte order mark and line separators', () => {
    const text = '\ufeff{"name":"Zoë\u2028"}'
    const written = serializeStoredDeadLetter(deadLetter(Buffer.from(text)))
    expect(JSON.parse(written)).toMatchObject({ v: 1, event: { body: text } })
    expect(Buffer.from(parseStoredDeadLetter(written).event.bytes).toString()).toBe(text)
  })

  it.each([
    '',
    '{',
    'null',
    '[]',
    '{"v":1}',
    '{"v":2,"event":{},"failure":{"class":"schema"},"cycle":{}}',
  ])('is rejected when it is not one: %s', (text) => {
    expect(() => parseStoredDeadLetter(text)).toThrow(
      expect.objectContaining({ code: 'PAYLOAD_INVALID' }),
    )
  })
})
