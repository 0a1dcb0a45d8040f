import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** 256 bits cannot be guessed, so it is enough to store a hash without salt. */
const SECRET_BYTES = 32

/** Returns a new secret with 43 characters of base64url. */
export const newSecret = (): string => randomBytes(SECRET_BYTES).toString('base64url')

export const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Compares two secrets in constant time. Both are hashed first, so that the time does not reveal their lengths. */
export const isSame = (one: string, other: string): boolean =>
  timingSafeEqual(sha256(one), sha256(other))

/**
 * Returns the CSRF token of a session. Other sites cannot read it from a response. It is derived from the session's
 * secret, so it is valid only for this session and does not reveal the secret.
 */
export const csrfOfSecret = (secret: string): string =>
  createHmac('sha256', secret).update('redrive csrf 1').digest('base64url')
