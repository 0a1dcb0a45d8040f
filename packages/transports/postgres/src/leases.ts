import type { PostgresDelivery } from './delivery.ts'
import type { ResolvedOptions } from './options.ts'
import { RENEW } from './sql/transport.ts'
import { runStatement } from './statement.ts'

/** Renews leases. Returns the deliveries that have another owner now. */
export async function renewLeases(
  options: ResolvedOptions,
  deliveries: readonly PostgresDelivery[],
): Promise<readonly PostgresDelivery[]> {
  if (deliveries.length === 0) return []
  const ids = deliveries.map(({ id }) => id)
  const tokens = deliveries.map(({ token }) => token)
  const rows = await runStatement<[string]>(options, RENEW, [ids, tokens, options.leaseMs])
  return staleAmong(
    deliveries,
    rows.map(([id]) => id),
  )
}

/**
 * The deliveries whose lease is gone, by the ids that the database returns. An event that this consumer
 * claimed again is in flight twice with one id: the older token is the stale one.
 */
function staleAmong(
  deliveries: readonly PostgresDelivery[],
  ids: readonly string[],
): readonly PostgresDelivery[] {
  if (ids.length === 0) return []
  const left = Map.groupBy(ids, (id) => id)
  return deliveries
    .toSorted((one, other) => Number(BigInt(one.token) - BigInt(other.token)))
    .filter(({ id }) => left.get(id)?.pop() !== undefined)
}
