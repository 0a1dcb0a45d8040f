import type { Delivery } from '@redrive/core'
import { OWN_SIGNATURE } from '@redrive/core/internal'

/** Returns the signature of a failure; undefined: the rules of Redrive decide. */
export type SignFailure = (error: unknown, delivery: Delivery) => string | undefined

/** 200 characters: it is a header of each retry and dead letter. */
const SIGNATURE_MAX = 200

/**
 * Returns the signature that the consumer gives a failure. As with the rules, the same failure in another handler is
 * another failure. Throws if the function throws or returns anything else than a short text.
 */
export function ownSignature(
  sign: SignFailure,
  error: unknown,
  delivery: Delivery,
  handler: string,
): string | undefined {
  const given: unknown = sign(error, delivery)
  if (given === undefined) return undefined
  if (given instanceof Promise) {
    // The error below reports the mistake. A rejection of this promise would end the process.
    given.catch(() => undefined)
    throw new TypeError(
      'signature: expected a text, got a promise. The function must not be async.',
    )
  }
  if (typeof given !== 'string' || given.trim() === '' || given.length > SIGNATURE_MAX) {
    const what = typeof given === 'string' ? `${given.length} characters` : typeof given
    throw new TypeError(
      `signature: expected a text of 1 to ${SIGNATURE_MAX} characters, got ${what}.`,
    )
  }
  return handler === delivery.source
    ? `${OWN_SIGNATURE}${given}`
    : `${OWN_SIGNATURE}${handler}:${given}`
}
