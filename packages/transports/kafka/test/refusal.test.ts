import { describe, expect, it } from 'vitest'
import { hasRefusal, refusalIn } from '../src/protocol/refusal.ts'

const error = (message: string, fields: object = {}) => Object.assign(new Error(message), fields)
const tooLarge = error('The record is too large.', { apiId: 'MESSAGE_TOO_LARGE' })
const forbidden = error('No access.', { apiId: 'TOPIC_AUTHORIZATION_FAILED' })
const timeout = error('Request timed out.', { code: 'PLT_KFK_TIMEOUT' })
const several = (...errors: readonly Error[]) => new AggregateError(errors, 'Producing failed.')

describe('a refusal', () => {
  it('is found below the errors of a client, with its name and words', () => {
    expect(refusalIn(several(several(forbidden)))).toEqual({
      words: 'TOPIC_AUTHORIZATION_FAILED: No access.',
      isTooLarge: false,
    })
    expect(refusalIn(error('It failed.', { cause: tooLarge }))?.isTooLarge).toBe(true)
    expect(refusalIn(several(forbidden, tooLarge))?.isTooLarge).toBe(true)
  })

  it('is not certain when another attempt ended in another way', () => {
    expect(refusalIn(several(forbidden, timeout))).toBeUndefined()
    expect(hasRefusal(several(forbidden, timeout))).toBe(true)
    expect(hasRefusal(several(timeout, timeout))).toBe(false)
  })

  it.each([undefined, null, 'text', error('closed'), error('x', { apiId: 'NOT_ENOUGH_REPLICAS' })])(
    'is not %s',
    (other) => {
      expect(refusalIn(other)).toBeUndefined()
      expect(hasRefusal(other)).toBe(false)
    },
  )

  it('has the names of kafkajs, of the Confluent client and of a missing topic', () => {
    const named = (type: string) => refusalIn(error('x', { type }))?.words
    expect(named('MESSAGE_TOO_LARGE')).toBe('MESSAGE_TOO_LARGE: x')
    expect(named('ERR_MSG_SIZE_TOO_LARGE')).toBe('MESSAGE_TOO_LARGE: x')
    expect(named('ERR_TOPIC_AUTHORIZATION_FAILED')).toBe('TOPIC_AUTHORIZATION_FAILED: x')
    expect(refusalIn(error('Unknown topic orders.'))?.words).toBe(
      'UNKNOWN_TOPIC_OR_PARTITION: Unknown topic orders.',
    )
  })
})
