import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'

/** 256 bits: nobody guesses it, so a plain hash of it is enough to keep. */
const SECRET_BYTES = 32

/** 43 characters of base64url. */
export const newSecret = (): string => randomBytes(SECRET_BYTES).toString('base64url')

export const sha256 = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Takes as long for a wrong one as for the right one. Both are hashed first, so lengths do not show. */
export const isSame = (one: string, other: string): boolean =>
  timingSafeEqual(sha256(one), sha256(other))

/**
 * Proves that who asks could read an answer of ours: another site cannot. It is made of the session's secret,
 * so it is worth nothing with any other session, and the secret cannot be read from it.
 */
export const csrfOfSecret = (secret: string): string =>
  createHmac('sha256', secret).update('redrive csrf 1').digest('base64url')
