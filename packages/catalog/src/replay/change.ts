import { RedriveError } from '@redrive/core'
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
    const [error] = applyPatch(root, [underRoot(operation)])
    if (error !== null) {
      throw new NotChangeable(
        `operation ${at + 1} (${operation.op} ${operation.path}): ${error?.message}`,
      )
    }
  }
  return Buffer.from(JSON.stringify(root.body))
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

/** As it is kept with the run. A body may be secret: it is sealed when payloads are. */
export async function keepChange(
  change: ReplayChange | undefined,
  runId: string,
  keys: PayloadKeys | undefined,
): Promise<unknown> {
  if (change === undefined) return null
  if (!('edit' in change)) return change
  if (keys === undefined) return { edit: base64(change.edit) }
  const sealer = sealerOf(await keyOf(keys, keys.current), runId)
  return {
    edit: base64(sealer.seal(change.edit, 0)),
    keyId: keys.current,
    wrappedKey: base64(sealer.wrappedKey),
  }
}

type KeptChange =
  | Exclude<ReplayChange, { readonly edit: Uint8Array }>
  | { readonly edit: string; readonly keyId?: string; readonly wrappedKey?: string }

export async function readChange(
  kept: unknown,
  runId: string,
  keys: PayloadKeys | undefined,
): Promise<ReplayChange | undefined> {
  if (kept === null) return undefined
  const change = kept as KeptChange
  if (!('edit' in change)) return change
  const bytes = Buffer.from(change.edit, 'base64')
  const { keyId, wrappedKey } = change
  if (keyId === undefined || wrappedKey === undefined) return { edit: bytes }
  if (keys === undefined) {
    const message = `The edit is encrypted with the key '${keyId}'. Give the catalog its keys: catalog({ pool, keys }).`
    throw new RedriveError('POLICY_INVALID', message)
  }
  const open = openerOf(await keyOf(keys, keyId), runId, Buffer.from(wrappedKey, 'base64'))
  return { edit: open(bytes, 0) }
}

const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
