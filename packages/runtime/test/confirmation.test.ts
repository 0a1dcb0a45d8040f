import { ALREADY_HANDLED, type Delivery, type Drop, SETTLE } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import { readConfirmation, writeConfirmation } from '../src/index.ts'

const replayed = { replayId: 'replay "1"\n' } as Delivery
const DROP = { kind: 'drop', reason: 'filtered' } as Drop

const read = (text: string) => readConfirmation(Buffer.from(text))

describe('a confirmation', () => {
  it('comes back as it was written', () => {
    const outcomes = [SETTLE, ALREADY_HANDLED, DROP].map((decision) =>
      readConfirmation(writeConfirmation(replayed, decision, 17)),
    )
    expect(outcomes).toEqual(
      ['handled', 'already_handled', 'dropped'].map((outcome) => ({
        replayId: 'replay "1"\n',
        outcome,
        at: 17,
      })),
    )
  })

  it('may say more than we know', () => {
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
  ])('is not read from %s', (text) => {
    expect(read(text)).toBeUndefined()
  })

  it('is not read from bytes that are no text, or from far too many', () => {
    expect(readConfirmation(Uint8Array.from([255, 254]))).toBeUndefined()
    const long = `{"version":1,"replayId":"r","outcome":"handled","at":1,"x":"${'x'.repeat(65_536)}"}`
    expect(read(long)).toBeUndefined()
  })
})
