import type { OrderPlaced } from './orders.ts'

/** The gateway's answer when it is not yes. Redrive reads `status`, and `Retry-After` in `headers`. */
class PaymentsError extends Error {
  readonly status: number
  readonly headers: Headers

  constructor({ status, headers }: Response) {
    super(`The payment gateway answered ${status}.`)
    this.status = status
    this.headers = headers
  }
}

/**
 * Takes the money. That does not roll back with our transaction, so the gateway is told the key: asked
 * again with the same one, it says yes and takes nothing.
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
