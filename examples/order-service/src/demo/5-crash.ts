import assert from 'node:assert/strict'
import { outbox } from '@redrive/postgres'
import type { World } from './world.ts'

export async function crash(world: World): Promise<void> {
  const { story, gateway, subscriber, database } = world
  story.heading('5. The process dies with the money taken and nothing written down')
  gateway.isMute = true
  const orderId = await world.buy()
  const key = `charge-${orderId}`
  await gateway.asked.one('the gateway is asked', (asked) => asked === key)
  await world.service.kill()
  const diedAt = performance.now()
  story.say(`The gateway has charged ${orderId}; kill -9 before its answer arrives.`)
  gateway.isMute = false
  await world.deploy({ CURRENCIES: 'EUR,USD,CHF' })
  await subscriber.hears([orderId])
  const seconds = ((performance.now() - diedAt) / 1000).toFixed(1)
  story.say(`Another process took over when the lease of 2 s was over, ${seconds} s later.`)

  // Once, or more often on a machine that stands still for longer than a lease.
  const [taken] = await database.rows<{ lapses: number }>(
    `select lapses from redrive.outbox where key = $1`,
    [key],
  )
  assert.ok((taken?.lapses ?? 0) >= 1)
  const timesAsked = () => gateway.asked.all.filter((asked) => asked === key).length
  const before = timesAsked()
  assert.ok(before >= 2)
  story.say('It asked the gateway again, under the same key, which took nothing more.')

  await addAgain(world, orderId)
  await world.service.says(/event=already_handled/)
  assert.equal(timesAsked(), before)
  story.say(
    'The event is added a second time by mistake: the inbox knows its key, nobody is asked.',
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
