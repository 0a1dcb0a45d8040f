import { describe, expect, it } from 'vitest'
import { creationProblems, notCreated } from '../src/creation-problems.ts'

/** An error of a topic, as kafkajs reports it. */
const ofTopic = (topic: string, type: string, retriable = false) =>
  Object.assign(new Error(`words about ${type}`), { topic, type, retriable })

const failed = (...errors: readonly Error[]) =>
  Object.assign(new Error('Topic creation errors'), { errors })

describe('the creation errors of kafkajs', () => {
  it('are listed by topic, without topics that exist or may exist soon', () => {
    const error = failed(
      ofTopic('a', 'POLICY_VIOLATION'),
      ofTopic('b', 'TOPIC_ALREADY_EXISTS'),
      ofTopic('c', 'REQUEST_TIMED_OUT', true),
    )
    expect([...creationProblems(error)]).toEqual([
      ['a', 'POLICY_VIOLATION: words about POLICY_VIOLATION'],
    ])
  })

  it('are one error with all topics', () => {
    const error = failed(
      ofTopic('a', 'INVALID_REPLICATION_FACTOR'),
      ofTopic('b', 'TOPIC_AUTHORIZATION_FAILED'),
    )
    expect(notCreated('orders', error)).toMatchObject({
      code: 'TOPOLOGY_MISMATCH',
      cause: error,
      problems: [
        '"a": INVALID_REPLICATION_FACTOR: words about INVALID_REPLICATION_FACTOR',
        '"b": TOPIC_AUTHORIZATION_FAILED: words about TOPIC_AUTHORIZATION_FAILED',
      ],
    })
  })

  it('are the given error when it names no topic', () => {
    const error = new Error('socket closed')
    expect(notCreated('orders', error)).toBe(error)
    expect(notCreated('orders', new AggregateError([error]))).toBe(error)
  })
})
