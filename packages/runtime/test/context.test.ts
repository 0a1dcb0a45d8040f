import { memoryInbox } from '@redrive/testing'
import { describe, expect, it } from 'vitest'
import { world } from './fixtures.ts'

describe('the context of a handler', () => {
  it.each([
    ['without an inbox', {}] as const,
    ['with an inbox', { inbox: memoryInbox() }] as const,
  ])('has a `skip` that works when it is taken out of the context, %s', async (_, options) => {
    const { send, start, clock, backlog, drain } = world()
    let runs = 0
    const consumer = await start(async (_message, { skip }) => {
      runs += 1
      await Promise.resolve()
      return skip()
    }, options)
    send({})
    await clock.advance('1m')
    expect(runs).toBe(1)
    expect(consumer.stats()).toMatchObject({ handled: 1, failed: 0 })
    expect(consumer.health().lastHandledAt).toBeUndefined()
    expect(backlog()).toBe(0)
    expect(await drain()).toEqual([])
  })
})
