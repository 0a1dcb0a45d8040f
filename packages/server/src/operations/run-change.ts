import type { Output } from '@redrive/api'
import type { Action } from '@redrive/api/enums'
import type { PatchOperation, ReplayChange } from '@redrive/catalog'
import { allows } from '../access/allow.ts'
import type { Handlers } from './handlers.ts'
import type { OperationDeps } from './context.ts'

/** Returns the change of a run to editors and approvers. An approver must see the change and not only its hash. */
export function runChange({ catalog, guard }: OperationDeps): Handlers<'getReplayChange'> {
  return {
    async getReplayChange(caller, { params: { id } }) {
      const audited = { caller, operation: 'getReplayChange', subject: id } as const
      const source = await guard.sourceOf(audited, 'run', id, 'view_payload')
      const editOrApprove = allows(caller, 'edit', source) ? 'edit' : 'approve'
      await guard.check({ ...audited, source }, source, [editOrApprove], 'run')
      const change = await catalog.replays.change(id)
      const view = viewOf(change, allows(caller, 'view_unmasked', source))
      const { kind, isHidden } = view
      await guard.seen({ ...audited, source, facts: { change: kind, isHidden } })
      return view
    },
  }
}

/** The permissions to see every change. */
export const ALL_TO_SEE: readonly Action[] = ['view_payload', 'view_unmasked']

/**
 * Returns the permissions that a person needs to see the whole change of a run. A person who approves a run
 * must be able to see what it does.
 */
export function actionsToSee(change: ReplayChange | undefined): readonly Action[] {
  const { kind, isHidden } = viewOf(change, false)
  if (kind === 'none' || kind === 'force') return []
  return isHidden ? ALL_TO_SEE : ['view_payload']
}

type ChangeView = Output<'getReplayChange'>

/** Returns the visible part of a change. An edit is a complete body, so it requires "view_unmasked". */
function viewOf(change: ReplayChange | undefined, isUnmasked: boolean): ChangeView {
  if (change === undefined) return { kind: 'none', isHidden: false }
  if ('force' in change) return { kind: 'force', isHidden: false }
  if ('edit' in change) return viewOfEdit(change.edit, isUnmasked)
  const patch = change.patch.map((one) => (isUnmasked ? one : withoutTested(one)))
  const isHidden = !isUnmasked && change.patch.some(({ op }) => op === 'test')
  return { kind: 'patch', isHidden, patch }
}

function viewOfEdit(edit: Uint8Array, isUnmasked: boolean): ChangeView {
  if (!isUnmasked) return { kind: 'edit', isHidden: true }
  const bytes = Buffer.from(edit).toString('base64')
  const text = textOf(edit)
  return { kind: 'edit', isHidden: false, bytes, ...(text === undefined ? {} : { text }) }
}

/** Removes the value of a `test` operation, which is a value of the bodies. Written values are new and stay. */
const withoutTested = (one: PatchOperation): PatchOperation | Omit<PatchOperation, 'value'> =>
  one.op === 'test' ? { op: one.op, path: one.path } : one

/** Returns the bytes as text, or undefined if they are not valid UTF-8. */
function textOf(bytes: Uint8Array): string | undefined {
  const text = Buffer.from(bytes).toString('utf8')
  return Buffer.from(text, 'utf8').equals(bytes) ? text : undefined
}
