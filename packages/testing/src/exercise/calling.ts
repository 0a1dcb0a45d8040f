import assert from 'node:assert/strict'
import { SETTLE } from '@redrive/core'
import { numbered } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { ScenarioContext } from './scenario-context.ts'

/** 3 messages with a limit of 1: a transport that ignores the limit delivers the second immediately. */
const MESSAGES = 3

async function orderOfCalls(context: ScenarioContext): Promise<void> {
  for (let number = 0; number < MESSAGES; number++) await context.world.send(numbered(number))
  const receiver = await context.receiver({ limit: 1, isPaused: true })
  await context.quiet()
  assert.equal(
    receiver.deliveries.length,
    0,
    'deliveries after pause(), receive() and before resume()',
  )
  receiver.transport.resume()
  for (let count = 1; count <= MESSAGES; count++) {
    const delivery = await receiver.next()
    await context.quiet()
    assert.equal(receiver.deliveries.length, count, 'deliveries with limit(1) before receive()')
    await receiver.put(delivery, SETTLE)
  }
  await context.places({ backlog: 0, deadLetters: 0 })
}

async function closeAlwaysResolves(context: ScenarioContext): Promise<void> {
  const unopened = context.transport()
  await context.within('close() resolves without open()', unopened.close({ drainMs: 0 }))
  const receiver = await context.receiver()
  await receiver.close()
  await context.within('close() resolves again', receiver.transport.close({ drainMs: 0 }))
  const id = await context.world.send(numbered(1))
  await context.quiet()
  assert.deepEqual(receiver.deliveries, [], 'deliveries after close()')
  const next = await context.receiver()
  const delivery = await next.next()
  assert.equal(delivery.id, id)
  await next.put(delivery, SETTLE)
  await context.places({ backlog: 0, deadLetters: 0 })
}

export const CALLING: readonly Scenario[] = [
  { name: 'limit and pause before receive hold from the first delivery', play: orderOfCalls },
  { name: 'close resolves without open and when called again', play: closeAlwaysResolves },
]
