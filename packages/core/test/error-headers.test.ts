import { describe, expect, test } from 'vitest'
import { reportOfErrorHeaders } from '../src/error-headers.ts'

const reported = (headers: Readonly<Record<string, unknown>>) =>
  reportOfErrorHeaders((name) => headers[name])

const NONE = { type: undefined, stack: undefined, at: undefined, attempts: 1 }

describe('error headers', () => {
  test.each([
    ...['x-error-message', 'x-error', 'x-exception', 'x-last-error', 'x-failure-reason'],
    ...['error-message', 'errorMessage', 'error', 'exception'],
  ])('%s has the message', (name) => {
    expect(reported({ [name]: 'no sofa' })).toEqual({ ...NONE, message: 'no sofa' })
  })

  test.each(['x-error-type', 'x-exception-type', 'error-type'])('%s has the type', (name) => {
    expect(reported({ error: 'no', [name]: 'StockError' })?.type).toBe('StockError')
  })

  test.each(['x-error-stack', 'x-stack-trace', 'error-stack'])('%s has the stack', (name) => {
    expect(reported({ error: 'no', [name]: 'at a' })?.stack).toBe('at a')
  })

  test.each(['x-retry-count', 'retry-count'])('%s has the retries', (name) => {
    expect(reported({ error: 'no', [name]: '2' })?.attempts).toBe(3)
    expect(reported({ error: 'no', [name]: 2 })?.attempts).toBe(3)
    expect(reported({ error: 'no', [name]: -2 })?.attempts).toBe(1)
    expect(reported({ error: 'no', [name]: 'x' })?.attempts).toBe(1)
  })

  test('may be a table or JSON', () => {
    const error = { name: 'StockError', message: 'no sofa', stack: 'at a' }
    const expected = { ...NONE, message: 'no sofa', type: 'StockError', stack: 'at a' }
    expect(reported({ 'x-error': error })).toEqual(expected)
    expect(reported({ 'x-error': JSON.stringify(error) })).toEqual(expected)
    expect(reported({ 'x-error': { type: 'StockError', message: 'no' } })?.type).toBe('StockError')
  })

  test.each(['{', '{"code":1}', `{"message":"${'x'.repeat(65_536)}"}`])(
    'may be other text: %.20s',
    (text) => {
      expect(reported({ 'x-error': text })?.message).toBe(text)
    },
  )

  test('may be JSON of up to 64 KiB', () => {
    const json = (length: number) => `{"message":"${'x'.repeat(length - '{"message":""}'.length)}"}`
    expect(reported({ 'x-error': json(65_536) })?.message).toMatch(/^x+$/)
    expect(reported({ 'x-error': json(65_537) })?.message).toBe(json(65_537))
  })

  test.each([
    ['TypeError: total is undefined', 'TypeError'],
    ['java.lang.IllegalStateException: closed', 'java.lang.IllegalStateException'],
    ['Note: closed', undefined],
    ['no TypeError: closed', undefined],
  ])('%j has the type %j', (message, type) => {
    expect(reported({ error: message })?.type).toBe(type)
  })

  test.each([[{}], [{ 'x-error': '' }], [{ 'x-error': 5 }], [{ 'x-error-type': 'StockError' }]])(
    '%j have no error',
    (headers) => {
      expect(reported(headers)).toBeUndefined()
    },
  )

  test('are read in a fixed order', () => {
    expect(reported({ error: 'b', 'x-error': 'a' })?.message).toBe('a')
  })
})
