import { type Delivery, type Drop, SETTLE } from '@redrive/core'
import { ALREADY_HANDLED } from '@redrive/core/internal'
import { describe, expect, it } from 'vitest'
import { parseConfirmation, serializeConfirmation } from '../src/index.ts'

const replayed = { replayId: 'replay "1"\n' } as Delivery
const DROP = { kind: 'drop', reason: 'filtered' } as Drop

const read = (text: string) => parseConfirmation(Buffer.from(text))

describe('a confirmation', () => {
  it('is parsed as it was serialized', () => {
    const outcomes = [SETTLE, ALREADY_HANDLED, DROP].map((decision) =>
      parseConfirmation(serializeConfirmation(replayed, decision, 17)),
    )
    expect(outcomes).toEqual(
      ['handled', 'already_handled', 'dropped'].map((outcome) => ({
        replayId: 'replay "1"\n',
        outcome,
        at: 17,
      })),
    )
  })

  it('may contain unknown fields', () => {
    const text = '{"version":1,"replayId":"r","outcome":"handled","at":1,"node":"a"}'
    expect(read(text)).toEqual({ replayId: 'r', outcome: 'handled', at: 1 })
  })

  it.each([
    '',
    'null',
    '[]',
    '"text"',
    '{"version":1',
    '{"replayId":"r","outcome":"handled","at":1}',
    '{"version":2,"replayId":"r","outcome":"handled","at":1}',
    '{"version":1,"replayId":7,"outcome":"handled","at":1}',
    '{"version":1,"replayId":"r","outcome":"lost","at":1}',
    '{"version":1,"replayId":"r","outcome":"toString","at":1}',
    '{"version":1,"replayId":"r","outcome":"handled","at":"now"}',
  ])('is not parsed from %s', (text) => {
    expect(read(text)).toBeUndefined()
  })

  it('is not parsed from bytes that are not text, or from too many bytes', () => {
    expect(parseConfirmation(Uint8Array.from([255, 254]))).toBeUndefined()
    const long = `{"version":1,"replayId":"r","outcome":"handled","at":1,"x":"${'x'.repeat(65_536)}"}`
    expect(read(long)).toBeUndefined()
  })
})
