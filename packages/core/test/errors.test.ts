import { describe, expect, test } from 'vitest'
import { isRedriveError, RedriveError } from '../src/errors.ts'

describe('a Redrive error', () => {
  test('is an Error with a name, a stable code and a readable message', () => {
    const error = new RedriveError('CLOSED', 'The consumer is closed.')
    expect(error).toBeInstanceOf(Error)
    expect(error.name).toBe('RedriveError')
    expect(error.code).toBe('CLOSED')
    expect(error.message).toBe('The consumer is closed.')
  })

  test('has no problems, cause or wait by default', () => {
    const error = new RedriveError('CLOSED', 'The consumer is closed.')
    expect(error.problems).toEqual([])
    expect(error.retryAfterMs).toBeUndefined()
    expect('cause' in error).toBe(false)
  })

  test('carries its cause, its problems and how long to wait', () => {
    const cause = new Error('socket closed')
    const problems = ['retry.attempts: expected a number']
    const error = new RedriveError('DLQ_FULL', 'Full.', { cause, problems, retryAfterMs: 250 })
    expect(error.cause).toBe(cause)
    expect(error.problems).toEqual(problems)
    expect(error.retryAfterMs).toBe(250)
  })

  test('carries a cause that is null, because null can be thrown too', () => {
    const error = new RedriveError('CLOSED', 'Closed.', { cause: null })
    expect('cause' in error).toBe(true)
    expect(error.cause).toBeNull()
  })

  test('hides its brand from loggers that print every property', () => {
    const error = new RedriveError('CLOSED', 'Closed.')
    const brand = Object.getOwnPropertyDescriptor(error, Symbol.for('redrive.error'))
    expect(brand).toEqual({ value: true, enumerable: false, writable: false, configurable: false })
  })
})

describe('isRedriveError', () => {
  test('is false for a value that throws when it is read', () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    expect(isRedriveError(proxy)).toBe(false)
    expect(isRedriveError(proxy, 'CLOSED')).toBe(false)
  })

  test('recognises an error of this install', () => {
    expect(isRedriveError(new RedriveError('CLOSED', 'Closed.'))).toBe(true)
  })

  test('recognises an error of another install of the package, where instanceof fails', () => {
    const foreign = Object.assign(new Error('Closed.'), {
      code: 'CLOSED',
      [Symbol.for('redrive.error')]: true,
    })
    expect(foreign).not.toBeInstanceOf(RedriveError)
    expect(isRedriveError(foreign)).toBe(true)
    expect(isRedriveError(foreign, 'CLOSED')).toBe(true)
    expect(isRedriveError(foreign, 'DLQ_CLOSED')).toBe(false)
  })

  test('matches one code when a code is given', () => {
    const error = new RedriveError('DLQ_FULL', 'Full.')
    expect(isRedriveError(error, 'DLQ_FULL')).toBe(true)
    expect(isRedriveError(error, 'CLOSED')).toBe(false)
  })

  test('does not look inside a wrapper: pass the cause to check it', () => {
    const wrapper = new Error('handler failed', { cause: new RedriveError('CLOSED', 'Closed.') })
    expect(isRedriveError(wrapper)).toBe(false)
    expect(isRedriveError(wrapper.cause)).toBe(true)
  })

  test.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a text', 'RedriveError'],
    ['a number', 1],
    ['an Error', new Error('no')],
    ['an error that only has the name', Object.assign(new Error('no'), { name: 'RedriveError' })],
    ['an object that only has the code', { code: 'CLOSED' }],
  ])('returns false for %s', (_, value) => {
    expect(isRedriveError(value)).toBe(false)
    expect(isRedriveError(value, 'CLOSED')).toBe(false)
  })
})
