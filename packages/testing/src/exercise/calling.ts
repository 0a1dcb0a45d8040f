import assert from 'node:assert/strict'
import { SETTLE } from '@redrive/core'
import { numbered } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { Stage } from './stage.ts'

/** 3 messages with a limit of 1: a transport that ignores the limit delivers the second immediately. */
const MESSAGES = 3

async function orderOfCalls(stage: Stage): Promise<void> {
  for (let number = 0; number < MESSAGES; number++) await stage.world.send(numbered(number))
  const tap = await stage.tap({ limit: 1, isPaused: true })
  await stage.quiet()
  assert.equal(tap.deliveries.length, 0, 'deliveries after pause(), receive() and before resume()')
  tap.transport.resume()
  for (let count = 1; count <= MESSAGES; count++) {
    const delivery = await tap.next()
    await stage.quiet()
    assert.equal(tap.deliveries.length, count, 'deliveries with limit(1) before receive()')
    await tap.put(delivery, SETTLE)
  }
  await stage.places({ backlog: 0, deadLetters: 0 })
}

async function closeAlwaysResolves(stage: Stage): Promise<void> {
  const unopened = stage.transport()
  await stage.within('close() resolves without open()', unopened.close({ drainMs: 0 }))
  const tap = await stage.tap()
  await tap.close()
  await stage.within('close() resolves again', tap.transport.close({ drainMs: 0 }))
  const id = await stage.world.send(numbered(1))
  await stage.quiet()
  assert.deepEqual(tap.deliveries, [], 'deliveries after close()')
  const next = await stage.tap()
  const delivery = await next.next()
  assert.equal(delivery.id, id)
  await next.put(delivery, SETTLE)
  await stage.places({ backlog: 0, deadLetters: 0 })
}

export const CALLING: readonly Scenario[] = [
  { name: 'limit and pause before receive hold from the first delivery', play: orderOfCalls },
  { name: 'close resolves without open and when called again', play: closeAlwaysResolves },
]
