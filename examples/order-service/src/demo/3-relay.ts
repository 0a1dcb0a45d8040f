import assert from 'node:assert/strict'
import type { World } from './world.ts'

export async function relayed({ story, database, subscriber, orderIds }: World): Promise<void> {
  story.heading('3. Other services get the event through RabbitMQ')
  story.say('The transaction that booked a charge also added the event order.paid to the queue')
  story.say('shop-events, and a relay publishes that queue. A subscriber received:')
  const events = subscriber.events.all
  for (const { routingKey, key, body } of events.slice(0, 3)) {
    story.say(`  ${routingKey}  redrive-key ${key}  ${JSON.stringify(body)}`)
  }
  story.say(`  … ${events.length} in total`)
  assert.equal(events.length, orderIds.length)
  const ids = await database.rows<{ id: string }>(
    `select id from redrive.outbox where queue = 'shop-events' order by id`,
  )
  assert.deepEqual(
    events.map(({ id }) => id).sort(),
    ids.map(({ id }) => id),
  )
  story.say('The message id is the id of the row, so subscribers can recognise duplicates.')
}
