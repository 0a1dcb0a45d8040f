import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { Awaitable } from '@redrive/runtime'

/** Keys for payloads, 32 bytes each. */
export interface PayloadKeys {
  /** Id of the key for what is ingested from now on. */
  readonly current: string
  /** Every key that was ever current and whose payloads should still be read; undefined: it is not there. */
  get(id: string): Awaitable<Uint8Array | undefined>
}

/**
 * AES-256-GCM. Each dead letter has a random key of its own, which is kept wrapped by a key that is not
 * in the database: to change the outer key, only the wraps have to be made anew, and without it nothing
 * can be read any more. The wrap uses a random nonce, which is good for 2^32 dead letters for each outer key.
 */
const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Seals the parts of one dead letter. */
export interface Sealer {
  readonly wrappedKey: Buffer
  seal(bytes: Uint8Array, part: number): Buffer
}

/** What a part is bound to: it opens in its own place only. */
export const WIRE_PART = -1

export function sealerOf(outerKey: Uint8Array, id: string): Sealer {
  const key = randomBytes(KEY_BYTES)
  const nonce = randomBytes(NONCE_BYTES)
  return {
    wrappedKey: Buffer.concat([nonce, encrypt(outerKey, nonce, id, key)]),
    seal: (bytes, part) => encrypt(key, nonceOf(part), id, bytes),
  }
}

export function openerOf(
  outerKey: Uint8Array,
  id: string,
  wrappedKey: Uint8Array,
): (bytes: Uint8Array, part: number) => Buffer {
  const nonce = wrappedKey.subarray(0, NONCE_BYTES)
  const key = decrypt(outerKey, nonce, id, wrappedKey.subarray(NONCE_BYTES))
  return (bytes, part) => decrypt(key, nonceOf(part), id, bytes)
}

/** The part's number: a key is used for one dead letter, so no nonce comes twice. */
function nonceOf(part: number): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES)
  nonce.writeInt32BE(part)
  return nonce
}

function encrypt(key: Uint8Array, nonce: Uint8Array, id: string, bytes: Uint8Array): Buffer {
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(id))
  return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
}

function decrypt(key: Uint8Array, nonce: Uint8Array, id: string, sealed: Uint8Array): Buffer {
  const end = sealed.length - TAG_BYTES
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(id))
    .setAuthTag(sealed.subarray(end))
  return Buffer.concat([decipher.update(sealed.subarray(0, end)), decipher.final()])
}

/** The key, which must be there and must be one. */
export async function keyOf(keys: PayloadKeys | undefined, id: string): Promise<Uint8Array> {
  const key = await keys?.get(id)
  if (key === undefined) {
    const message = `It is encrypted with the key '${id}', which is not here. Add it to the keys again: 'keys.all' in the config of a server, or catalog({ pool, keys }).`
    // Nothing is wrong with what was asked: it can be done when the key is there.
    throw new RedriveError('CONFLICT', message)
  }
  if (key.length === KEY_BYTES) return key
  throw new RedriveError(
    'POLICY_INVALID',
    `keys.get('${id}'): expected ${KEY_BYTES} bytes, got ${key.length}`,
  )
}
