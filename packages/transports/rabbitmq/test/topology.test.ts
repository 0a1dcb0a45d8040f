import { FAILURE_CLASSES } from '@redrive/core'
import { describe, expect, it } from 'vitest'
import {
  deadLetterExchange,
  deadLetterQueue,
  delayQueue,
  type QueueSpec,
  quarantineQueue,
  STEPS_MS,
  topologyOf,
} from '../src/index.ts'
import { LONGEST_STEP_MS, stepFor } from '../src/topology.ts'

const QUEUE = 'orders'
const quorum = topologyOf(QUEUE, 'quorum')
const classic = topologyOf(QUEUE, 'classic')

const everyQueue = [quorum.source, quorum.deadLetters, ...quorum.later]
const isDelay = ({ name }: QueueSpec) => name.startsWith(`${QUEUE}.delay.`)
const delays = quorum.later.filter(isDelay)
const keepers = [quorum.deadLetters, ...quorum.later.filter((spec) => !isDelay(spec))]

describe('the names', () => {
  it('all start with the name of the source queue', () => {
    expect(deadLetterExchange(QUEUE)).toBe('orders.dlx')
    expect(deadLetterQueue(QUEUE)).toBe('orders.dlq')
    expect(quarantineQueue(QUEUE, 'schema')).toBe('orders.dlq.quarantine.schema')
    expect([100, 1_000, 60_000, 3_600_000].map((stepMs) => delayQueue(QUEUE, stepMs))).toEqual([
      'orders.delay.100ms',
      'orders.delay.1s',
      'orders.delay.1m',
      'orders.delay.1h',
    ])
  })

  it('are all different, with one for every step and every class', () => {
    const names = everyQueue.map(({ name }) => name)
    expect(new Set(names).size).toBe(names.length)
    expect(delays.map(({ name }) => name)).toEqual(
      STEPS_MS.map((stepMs) => delayQueue(QUEUE, stepMs)),
    )
    expect(keepers.map(({ name }) => name)).toEqual([
      'orders.dlq',
      ...FAILURE_CLASSES.map((name) => quarantineQueue(QUEUE, name)),
      'orders.replayed',
    ])
  })
})

describe('a queue for failed messages', () => {
  it('is a quorum queue that rejects instead of dropping, for every type of source', () => {
    for (const { source: _, deadLetters, later } of [quorum, classic]) {
      for (const { arguments: args } of [deadLetters, ...later]) {
        expect(args['x-queue-type']).toBe('quorum')
        expect(args['x-overflow']).toBe('reject-publish')
      }
    }
  })

  it('never expires, not even when it is unused', () => {
    for (const { arguments: args } of [...everyQueue, classic.source]) {
      expect(args).not.toHaveProperty('x-expires')
    }
  })

  it('has no length limit: a full dead-letter queue would stop its source', () => {
    for (const { arguments: args } of everyQueue) {
      expect(args).not.toHaveProperty('x-max-length')
      expect(args).not.toHaveProperty('x-max-length-bytes')
    }
  })

  it('keeps dead letters after any number of deliveries, and does not dead-letter them', () => {
    for (const { arguments: args } of keepers) {
      expect(args['x-delivery-limit']).toBe(1_000_000)
      expect(args).not.toHaveProperty('x-message-ttl')
      expect(args).not.toHaveProperty('x-dead-letter-exchange')
    }
  })
})

describe('the delay steps', () => {
  it('delay by the time to live of the whole queue, and dead-letter at least once', () => {
    expect(delays.map(({ arguments: args }) => args)).toEqual(
      STEPS_MS.map((stepMs) => ({
        'x-queue-type': 'quorum',
        'x-overflow': 'reject-publish',
        'x-dead-letter-strategy': 'at-least-once',
        'x-message-ttl': stepMs,
        'x-dead-letter-exchange': '',
        'x-dead-letter-routing-key': QUEUE,
      })),
    )
  })

  it('belong to one source', () => {
    const others = topologyOf('payments', 'quorum').later.map(({ name }) => name)
    expect(quorum.later.filter(({ name }) => others.includes(name))).toEqual([])
  })

  it('are ascending', () => {
    expect(STEPS_MS).toEqual([...new Set(STEPS_MS)].toSorted((left, right) => left - right))
    expect(LONGEST_STEP_MS).toBe(STEPS_MS.at(-1))
  })

  it('are never shorter than the delay, and not longer than needed', () => {
    for (const stepMs of STEPS_MS) {
      const below = STEPS_MS.filter((one) => one < stepMs).at(-1) ?? 0
      expect(stepFor(stepMs)).toBe(stepMs)
      expect(stepFor(below + 0.5)).toBe(stepMs)
      expect(stepFor(below + 1)).toBe(stepMs)
    }
  })

  it('use the longest step for longer delays', () => {
    expect(stepFor(LONGEST_STEP_MS + 1)).toBe(LONGEST_STEP_MS)
    expect(stepFor(Number.POSITIVE_INFINITY)).toBe(LONGEST_STEP_MS)
  })
})

describe('the source', () => {
  it('is a quorum queue that dead-letters at least once', () => {
    expect(quorum.source).toEqual({
      name: QUEUE,
      arguments: {
        'x-queue-type': 'quorum',
        'x-overflow': 'reject-publish',
        'x-dead-letter-strategy': 'at-least-once',
        'x-dead-letter-exchange': 'orders.dlx',
        'x-dead-letter-routing-key': QUEUE,
        'x-delivery-limit': 1_000_000,
      },
    })
  })

  it('may be classic, without arguments that a classic queue rejects', () => {
    expect(classic.source.arguments).toEqual({
      'x-queue-type': 'classic',
      'x-dead-letter-exchange': 'orders.dlx',
      'x-dead-letter-routing-key': QUEUE,
    })
  })
})
