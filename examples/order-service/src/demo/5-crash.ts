import assert from 'node:assert/strict'
import { outbox } from '@redrive/postgres'
import type { World } from './world.ts'

export async function crash(world: World): Promise<void> {
  const { story, gateway, subscriber, database } = world
  story.heading('5. The process dies after the charge and before the commit')
  gateway.isMute = true
  const orderId = await world.buy()
  const key = `charge-${orderId}`
  await gateway.requestedKeys.one('the gateway gets the request', (one) => one === key)
  await world.service.kill()
  const diedAt = performance.now()
  story.say(`The gateway has charged ${orderId}; kill -9 before its response arrives.`)
  gateway.isMute = false
  await world.deploy({ CURRENCIES: 'EUR,USD,CHF' })
  await subscriber.waitForPaid([orderId])
  const seconds = ((performance.now() - diedAt) / 1000).toFixed(1)
  story.say(`Another process took over after the lease of 2 s had expired, ${seconds} s later.`)

  // Once, or more often on a machine that is stalled for longer than a lease.
  const [taken] = await database.rows<{ lapses: number }>(
    `select lapses from redrive.outbox where key = $1`,
    [key],
  )
  assert.ok((taken?.lapses ?? 0) >= 1)
  const requestCount = () => gateway.requestedKeys.all.filter((one) => one === key).length
  const before = requestCount()
  assert.ok(before >= 2)
  story.say('It called the gateway again with the same key, so nothing more was charged.')

  await addAgain(world, orderId)
  await world.service.waitForLog(/event=already_handled/)
  assert.equal(requestCount(), before)
  story.say(
    'The event is added a second time by mistake. The inbox knows its key, so the gateway is not called.',
  )
}

async function addAgain({ database }: World, orderId: string): Promise<void> {
  const billing = outbox({ queue: 'billing', pool: database.pool })
  await billing.add(database.pool, {
    type: 'order.placed',
    key: `charge-${orderId}`,
    body: { orderId, amountCents: 1250, currency: 'EUR' },
  })
  billing.wake()
}
