import { describe, expect, test } from 'vitest'
import { ALREADY_HANDLED, SETTLE } from '../src/decision.ts'

describe('the constant decisions', () => {
  test('contain the reason why the message is done', () => {
    expect(SETTLE).toEqual({ kind: 'settle', reason: 'handled' })
    expect(ALREADY_HANDLED).toEqual({ kind: 'settle', reason: 'already_handled' })
  })

  test('are shared by all messages, so they are frozen', () => {
    expect(Object.isFrozen(SETTLE)).toBe(true)
    expect(Object.isFrozen(ALREADY_HANDLED)).toBe(true)
  })
})
