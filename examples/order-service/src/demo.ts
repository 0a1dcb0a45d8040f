import assert from 'node:assert/strict'
import { placing } from './demo/1-placing.ts'
import { outage } from './demo/2-outage.ts'
import { relayed } from './demo/3-relay.ts'
import { replay } from './demo/4-replay.ts'
import { crash } from './demo/5-crash.ts'
import { mustBeBookedOnce } from './demo/books.ts'
import { inWorld, type World } from './demo/world.ts'

async function play(world: World): Promise<void> {
  await placing(world)
  await outage(world)
  await relayed(world)
  await replay(world)
  await crash(world)
  await ending(world)
}

const UNFINISHED = `select id, queue, status, last_error from redrive.outbox where status <> 'delivered'`

async function ending(world: World): Promise<void> {
  const { story, database, subscriber, orderIds } = world
  story.heading('6. The service is stopped, and the books are checked')
  assert.equal(await world.service.stop(), 0, 'exit code of the service')
  await mustBeBookedOnce(world)
  assert.deepEqual(await database.rows(UNFINISHED), [])
  const paid = subscriber.events.all.map(({ body }) => body.orderId)
  assert.deepEqual(paid.sort(), [...orderIds].sort())
  story.end(`demo ok: ${orderIds.length} orders, each charged, booked and announced once`)
}

for (const error of await inWorld(play)) {
  console.error(`\ndemo failed: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
}
