import type { DrainedDeadLetter } from '@redrive/runtime'
import { applyPatch } from 'rfc6902'

import { sha256Of } from '../../ingest/identity.ts'
import { keyOf, createDecryptor, type PayloadKeys, createEncryptor } from '../../encryption.ts'
import { exactJson } from './exact-json.ts'
import type { PatchOperation, ReplayChange } from './options.ts'

/** An error for a change that cannot be applied to a message. */
export class NotChangeable extends Error {}

/**
 * Returns the message to publish. An edited body gets a new key, made of the old key and the new content. So the
 * inbox recognises a second copy after a crash, and treats a different edit as a different message. `replaces`
 * contains the old key, so that the original and the edited message never both take effect.
 */
export function changed(
  deadLetter: DrainedDeadLetter,
  change: ReplayChange | undefined,
): DrainedDeadLetter {
  if (change === undefined) return deadLetter
  const { delivery } = deadLetter
  if ('force' in change) {
    const key = keyFrom(delivery.key, 'force', String(delivery.cycle.number))
    return { ...deadLetter, delivery: { ...delivery, key } }
  }
  const bytes = 'edit' in change ? change.edit : patched(delivery.bytes, change.patch)
  // All edits of a message replace the same first key, so no two edits take effect.
  const replaces = delivery.replaces ?? delivery.key
  const key = keyFrom(replaces, 'edit', sha256Of(bytes).toString('hex'))
  const { isTombstone: _, ...rest } = delivery
  return { ...deadLetter, delivery: { ...rest, bytes, key, replaces } }
}

const keyFrom = (...parts: readonly string[]) =>
  `redrive-${sha256Of(JSON.stringify(parts)).toString('base64url')}`

function patched(bytes: Uint8Array, operations: readonly PatchOperation[]): Uint8Array {
  const root = { body: exactJson(bytes) }
  for (const [at, operation] of operations.entries()) {
    if (isApplied(root, operation)) continue
    const { op, path } = operation
    const why =
      op === 'test'
        ? 'the body has a different value there'
        : 'a path of the operation does not exist in the body'
    throw new NotChangeable(`operation ${at + 1} (${op} ${path}): ${why}`)
  }
  return Buffer.from(JSON.stringify(root.body))
}

/**
 * Applies one operation and returns whether it succeeded. The error texts of the library are not used: they
 * contain values of the body, and a reader of the reason may lack permission to see these.
 */
function isApplied(root: object, operation: PatchOperation): boolean {
  const patch = [underRoot(operation)]
  if (!patch.every((one) => isInArrays(root, one))) return false
  try {
    return applyPatch(root, patch)[0] === null
  } catch (error) {
    // The library throws this error for a path inside a text or a number.
    if (error instanceof TypeError) return false
    throw error
  }
}

/** The operations that can write after the last element of an array. */
const APPENDING: ReadonlySet<string> = new Set(['add', 'move', 'copy'])

/**
 * Whether all paths that end in an array name an element of it. The library sets a property with any other name,
 * which JSON does not contain. So the body would stay the same, and the operation would count as applied.
 */
function isInArrays(root: object, operation: PatchOperation): boolean {
  const { op, path } = operation
  const isFrom = !('from' in operation) || isElement(root, operation.from, false)
  return isFrom && isElement(root, path, APPENDING.has(op))
}

const INDEX = /^(?:0|[1-9]\d*)$/

function isElement(root: object, path: string, canAppend: boolean): boolean {
  const names = path.split('/').slice(1).map(unescaped)
  const last = names.pop() ?? ''
  let parent: unknown = root
  for (const name of names) {
    if (Array.isArray(parent) && !INDEX.test(name)) return false
    parent = (parent as Readonly<Record<string, unknown>> | null | undefined)?.[name]
  }
  if (!Array.isArray(parent)) return true
  if (canAppend && last === '-') return true
  return INDEX.test(last) && Number(last) < parent.length + (canAppend ? 1 : 0)
}

const unescaped = (name: string) => name.replaceAll('~1', '/').replaceAll('~0', '~')

/** Moves the paths below the property `body`, so that a patch can replace the whole body. */
function underRoot(operation: PatchOperation): PatchOperation & { readonly value?: unknown } {
  const path = pointer(operation.path)
  if (operation.op === 'move' || operation.op === 'copy') {
    return { ...operation, path, from: pointer(operation.from) }
  }
  return { ...operation, path }
}

/** Names that would reach the prototype of all objects. A body has no such properties. */
const FORBIDDEN = /\/(?:__proto__|prototype|constructor)(?:\/|$)/

function pointer(path: unknown): string {
  const isPointer = typeof path === 'string' && (path === '' || path.startsWith('/'))
  if (!isPointer || FORBIDDEN.test(path))
    throw new NotChangeable(`${JSON.stringify(path)} is not an allowed JSON Pointer`)
  return `/body${path}`
}

/** Returns the change as stored with the run. It can contain secrets, so it is encrypted if payloads are. */
export async function keepChange(
  change: ReplayChange | undefined,
  runId: string,
  keys: PayloadKeys | undefined,
): Promise<unknown> {
  if (change === undefined) return null
  if ('force' in change) return change
  const isEdit = 'edit' in change
  if (keys === undefined) return isEdit ? { edit: base64(change.edit) } : change
  const bytes = isEdit ? change.edit : Buffer.from(JSON.stringify(change.patch))
  const encryptor = createEncryptor(await keyOf(keys, keys.current), runId)
  return {
    [isEdit ? 'edit' : 'patch']: base64(encryptor.seal(bytes, 0)),
    keyId: keys.current,
    wrappedKey: base64(encryptor.wrappedKey),
  }
}

/** A stored change. An encrypted patch is a text, and an unencrypted one is a list. */
interface StoredChange {
  readonly force?: true
  readonly edit?: string
  readonly patch?: string | readonly PatchOperation[]
  readonly keyId?: string
  readonly wrappedKey?: string
}

export async function readChange(
  stored: unknown,
  runId: string,
  keys: PayloadKeys | undefined,
): Promise<ReplayChange | undefined> {
  if (stored === null) return undefined
  const { edit, patch, keyId, wrappedKey } = stored as StoredChange
  const text = edit ?? patch
  if (typeof text !== 'string') return stored as ReplayChange
  const content = Buffer.from(text, 'base64')
  if (keyId === undefined || wrappedKey === undefined) return { edit: content }
  const wrapped = Buffer.from(wrappedKey, 'base64')
  const decrypt = createDecryptor(await keyOf(keys, keyId), runId, wrapped)
  const bytes = decrypt(content, 0)
  if (edit !== undefined) return { edit: bytes }
  return { patch: JSON.parse(bytes.toString()) as readonly PatchOperation[] }
}

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
