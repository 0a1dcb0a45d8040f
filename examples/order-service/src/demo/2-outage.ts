import assert from 'node:assert/strict'
import { mustBeBookedOnce } from './books.ts'
import type { World } from './world.ts'

const WAITING = `
select count(*)::int as events, max(attempts) as attempts_counted
  from redrive.outbox where queue = 'billing' and due_at is not null`

export async function outage(world: World): Promise<void> {
  const { story, gateway, database, subscriber } = world
  story.heading('2. The payment gateway is down, and orders keep coming')
  gateway.isDown = true
  for (let count = 0; count < 5; count += 1) await world.buy()
  await world.deploy()
  await world.service.waitForLog(/queue=billing from=closed to=open/)
  story.say('Five failures in a row: the breaker of payments opens and billing pauses.')
  // Two: one to see the first probe, and one to see that it keeps probing.
  await world.service.waitForLog(/queue=billing from=halfOpen to=open/, 2)
  story.say('From time to time one event probes. No event is lost or dead-lettered:')
  const waiting = await database.rows<{ events: number }>(WAITING)
  story.sql(WAITING, waiting)
  assert.deepEqual(
    waiting.map(({ events }) => ({ events })),
    [{ events: 8 }],
  )

  gateway.isDown = false
  await world.service.waitForLog(/queue=billing from=halfOpen to=closed/)
  await subscriber.waitForPaid(world.orderIds)
  await mustBeBookedOnce(world)
  story.say('The gateway is back: two probes succeeded, and all 8 orders are charged, each once.')
}
