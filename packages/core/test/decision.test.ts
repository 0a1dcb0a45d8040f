import { describe, expect, test } from 'vitest'
import { ALREADY_HANDLED, SETTLE } from '../src/decision.ts'

describe('the decisions that are always the same', () => {
  test('say why the message is done with', () => {
    expect(SETTLE).toEqual({ kind: 'settle', reason: 'handled' })
    expect(ALREADY_HANDLED).toEqual({ kind: 'settle', reason: 'already_handled' })
  })

  test('are shared by all messages, so nobody can change them', () => {
    expect(Object.isFrozen(SETTLE)).toBe(true)
    expect(Object.isFrozen(ALREADY_HANDLED)).toBe(true)
  })
})
