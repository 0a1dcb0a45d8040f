import assert from 'node:assert/strict'
import type { World } from './world.ts'

const EVENTS = `select queue, type, key, status from redrive.outbox order by position`

export async function placing(world: World): Promise<void> {
  const { story, database } = world
  story.heading('1. An order and its event are one transaction')
  for (let count = 0; count < 3; count += 1) await world.buy()
  story.say('Three mugs are bought. Each order is stored together with its event:')
  story.sql(EVENTS, await database.rows(EVENTS))

  const soldOut = { code: '23514', constraint: 'products_stock_check' }
  await assert.rejects(() => world.buy('poster'), soldOut)
  const [counts] = await database.rows(
    `select (select count(*) from shop.orders)::int as orders, (select count(*) from redrive.outbox)::int as events`,
  )
  assert.deepEqual({ ...counts }, { orders: 3, events: 3 })
  story.say(
    'A poster is sold out. The order fails after its event was added, and both are rolled back:',
  )
  story.say('3 orders, 3 events.')
}
