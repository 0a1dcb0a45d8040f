import assert from 'node:assert/strict'
import type { World } from './world.ts'

/** Checks that every order that must be paid was charged and is in the ledger once. */
export async function mustBeBookedOnce({ database, gateway, orderIds }: World): Promise<void> {
  const ledger = await database.rows<{ id: string }>(
    'select order_id as id from shop.ledger order by order_id',
  )
  assert.deepEqual(
    ledger.map(({ id }) => id),
    [...orderIds].sort(),
  )
  assert.deepEqual(gateway.charges, new Set(orderIds.map((id) => `charge-${id}`)))
}
