import type { DrainedDeadLetter } from '@redrive/runtime'
import { applyPatch } from 'rfc6902'

import { sha256Of } from '../ingest/identity.ts'
import { keyOf, openerOf, type PayloadKeys, sealerOf } from '../seal.ts'
import { exactJson } from './exact-json.ts'
import type { PatchOperation, ReplayChange } from './options.ts'

/** Why a change cannot be made of this one. */
export class NotChangeable extends Error {}

/**
 * What goes out. An edited body gets a key of its own, made of the old one and the content, so that the
 * inbox takes a crash's second copy for the same and another edit for another; `replaces` names the old
 * key, so that the original and the edited one never both take effect.
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
  // Of several edits of one message, each stands in for the first: so no two of them take effect either.
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
    const why = op === 'test' ? 'the body has another value there' : 'the body has no place for it'
    throw new NotChangeable(`operation ${at + 1} (${op} ${path}): ${why}`)
  }
  return Buffer.from(JSON.stringify(root.body))
}

/**
 * Without the words of the library: they name values of the body, and who reads why an item was skipped may
 * not see those.
 */
function isApplied(root: object, operation: PatchOperation): boolean {
  const patch = [underRoot(operation)]
  try {
    return applyPatch(root, patch)[0] === null
  } catch (error) {
    // A place inside of a text or a number, over which the library trips.
    if (error instanceof TypeError) return false
    throw error
  }
}

/** Below a name of its own: a patch may replace the whole body. */
function underRoot(operation: PatchOperation): PatchOperation & { readonly value?: unknown } {
  const path = pointer(operation.path)
  if (operation.op === 'move' || operation.op === 'copy') {
    return { ...operation, path, from: pointer(operation.from) }
  }
  return { ...operation, path }
}

/** Names that reach the prototype of every object are no names of a body. */
const FORBIDDEN = /\/(?:__proto__|prototype|constructor)(?:\/|$)/

function pointer(path: unknown): string {
  const isFit = typeof path === 'string' && (path === '' || path.startsWith('/'))
  if (!isFit || FORBIDDEN.test(path))
    throw new NotChangeable(`${JSON.stringify(path)} is not a pointer`)
  return `/body${path}`
}

/** As it is kept with the run. What it writes into a body may be secret: it is sealed when payloads are. */
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
  const sealer = sealerOf(await keyOf(keys, keys.current), runId)
  return {
    [isEdit ? 'edit' : 'patch']: base64(sealer.seal(bytes, 0)),
    keyId: keys.current,
    wrappedKey: base64(sealer.wrappedKey),
  }
}

/** A patch is a text when it is sealed, and a list when it is not. */
interface KeptChange {
  readonly force?: true
  readonly edit?: string
  readonly patch?: string | readonly PatchOperation[]
  readonly keyId?: string
  readonly wrappedKey?: string
}

export async function readChange(
  kept: unknown,
  runId: string,
  keys: PayloadKeys | undefined,
): Promise<ReplayChange | undefined> {
  if (kept === null) return undefined
  const { edit, patch, keyId, wrappedKey } = kept as KeptChange
  const text = edit ?? patch
  if (typeof text !== 'string') return kept as ReplayChange
  const sealed = Buffer.from(text, 'base64')
  if (keyId === undefined || wrappedKey === undefined) return { edit: sealed }
  const open = openerOf(await keyOf(keys, keyId), runId, Buffer.from(wrappedKey, 'base64'))
  const bytes = open(sealed, 0)
  if (edit !== undefined) return { edit: bytes }
  return { patch: JSON.parse(bytes.toString()) as readonly PatchOperation[] }
}

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
