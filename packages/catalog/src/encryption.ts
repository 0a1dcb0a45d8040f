import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { Awaitable } from '@redrive/runtime'

/** Encryption keys for payloads, 32 bytes each. */
export interface PayloadKeys {
  /** Id of the key that encrypts new payloads. */
  readonly current: string
  /**
   * Returns a key by its id, or undefined if it does not exist. It must return every key that was ever current,
   * as long as its payloads must stay readable.
   */
  get(id: string): Awaitable<Uint8Array | undefined>
}

/**
 * AES-256-GCM. Each dead letter has its own random key. It is stored encrypted by an outer key, which is not in
 * the database. To change the outer key, only these encrypted keys are written again. Without the outer key, no
 * payload can be read. The random nonce of the encrypted keys is safe for 2^32 dead letters per outer key.
 */
const CIPHER = 'aes-256-gcm'
const KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** An encryptor for the parts of one dead letter. */
export interface Sealer {
  readonly wrappedKey: Buffer
  seal(bytes: Uint8Array, part: number): Buffer
}

/** The part number of the encoded headers and envelope. A part decrypts only with its number. */
export const WIRE_PART = -1

export function createEncryptor(outerKey: Uint8Array, id: string): Sealer {
  const key = randomBytes(KEY_BYTES)
  const nonce = randomBytes(NONCE_BYTES)
  return {
    wrappedKey: Buffer.concat([nonce, encrypt(outerKey, nonce, id, key)]),
    seal: (bytes, part) => encrypt(key, nonceOf(part), id, bytes),
  }
}

export function createDecryptor(
  outerKey: Uint8Array,
  id: string,
  wrappedKey: Uint8Array,
): (bytes: Uint8Array, part: number) => Buffer {
  const nonce = wrappedKey.subarray(0, NONCE_BYTES)
  const key = decrypt(outerKey, nonce, id, wrappedKey.subarray(NONCE_BYTES))
  return (bytes, part) => decrypt(key, nonceOf(part), id, bytes)
}

/** Returns the part number as a nonce. A key is used for one dead letter only, so no nonce repeats. */
function nonceOf(part: number): Buffer {
  const nonce = Buffer.alloc(NONCE_BYTES)
  nonce.writeInt32BE(part)
  return nonce
}

function encrypt(key: Uint8Array, nonce: Uint8Array, id: string, bytes: Uint8Array): Buffer {
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(id))
  return Buffer.concat([cipher.update(bytes), cipher.final(), cipher.getAuthTag()])
}

function decrypt(key: Uint8Array, nonce: Uint8Array, id: string, encrypted: Uint8Array): Buffer {
  const end = encrypted.length - TAG_BYTES
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES })
    .setAAD(Buffer.from(id))
    .setAuthTag(encrypted.subarray(end))
  return Buffer.concat([decipher.update(encrypted.subarray(0, end)), decipher.final()])
}

/** Returns the key with this id. Throws if it is missing or has the wrong length. */
export async function keyOf(keys: PayloadKeys | undefined, id: string): Promise<Uint8Array> {
  const key = await keys?.get(id)
  if (key === undefined) {
    const message = `The payload is encrypted with the key "${id}", which is missing. Add the key again: in "encryptionKeys.all" of the server config, or in catalog({ pool, keys }).`
    // A conflict: the request is valid and succeeds once the key is available.
    throw new RedriveError('CONFLICT', message)
  }
  if (key.length === KEY_BYTES) return key
  throw new RedriveError(
    'POLICY_INVALID',
    `keys.get('${id}'): expected ${KEY_BYTES} bytes, got ${key.length}`,
  )
}
