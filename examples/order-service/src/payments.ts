import type { OrderPlaced } from './orders.ts'

/** A failed response of the gateway. Redrive reads `status`, and `Retry-After` in `headers`. */
class PaymentsError extends Error {
  readonly status: number
  readonly headers: Headers

  constructor({ status, headers }: Response) {
    super(`The payment gateway returned ${status}.`)
    this.status = status
    this.headers = headers
  }
}

/**
 * Charges the customer. A charge does not roll back with the transaction, so the request has an
 * idempotency key. A repeated request with the same key succeeds and charges nothing.
 */
export async function charge(
  paymentsUrl: string,
  key: string,
  { amountCents, currency }: OrderPlaced,
  signal: AbortSignal,
): Promise<void> {
  const response = await fetch(`${paymentsUrl}/charges`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify({ amountCents, currency }),
    signal,
  })
  await response.body?.cancel()
  if (!response.ok) throw new PaymentsError(response)
}
