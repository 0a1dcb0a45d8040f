import type { PostgresDelivery } from './delivery.ts'
import type { ResolvedOptions } from './options.ts'
import { RENEW } from './sql/transport.ts'
import { runStatement } from './statement.ts'

/** The deliveries in flight, each with the time of its claim. */
export type InFlight = ReadonlyMap<PostgresDelivery, number>

/** Renews the leases of older deliveries in flight. Returns the deliveries that have another owner now. */
export async function renewLeases(
  { pool, leaseMs }: ResolvedOptions,
  inFlight: InFlight,
): Promise<readonly PostgresDelivery[]> {
  const olderThan = performance.now() - leaseMs / 6
  const old = [...inFlight].filter(([, since]) => since <= olderThan).map(([one]) => one)
  if (old.length === 0) return []
  const ids = old.map(({ id }) => id)
  const tokens = old.map(({ token }) => token)
  const rows = await runStatement<[string]>(pool, RENEW, [ids, tokens, leaseMs])
  return staleAmong(
    old,
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
