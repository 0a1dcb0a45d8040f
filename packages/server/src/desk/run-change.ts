import type { Answer } from '@redrive/api'
import type { PatchOperation, ReplayChange } from '@redrive/catalog'
import { allows } from '../access/allow.ts'
import { textOf } from './dead-letters.ts'
import type { Handlers } from './handlers.ts'
import type { DeskParts } from './parts.ts'

/** For who edits and for who approves: four eyes that do not see the change would agree to a hash. */
export function runChange({ catalog, guard }: DeskParts): Handlers<'getReplayChange'> {
  return {
    async getReplayChange(caller, { params: { id } }) {
      const asked = { caller, what: 'getReplayChange', subject: id } as const
      const source = await guard.sourceOf(asked, 'run', id, 'payload')
      const either = allows(caller, 'edit', source) ? 'edit' : 'approve'
      await guard.check({ ...asked, source }, source, [either], 'run')
      const change = await catalog.replays.change(id)
      const shown = shownChange(change, allows(caller, 'unmask', source))
      const { kind, isHidden } = shown
      await guard.seen({ ...asked, source, facts: { change: kind, isHidden } })
      return shown
    },
  }
}

type Shown = Answer<'getReplayChange'>

/** As bodies are: an edited one is a whole body, which only who may unmask sees. */
function shownChange(change: ReplayChange | undefined, isUnmasked: boolean): Shown {
  if (change === undefined) return { kind: 'none', isHidden: false }
  if ('force' in change) return { kind: 'force', isHidden: false }
  if ('edit' in change) return shownEdit(change.edit, isUnmasked)
  const patch = change.patch.map((one) => (isUnmasked ? one : withoutTested(one)))
  const isHidden = !isUnmasked && change.patch.some(({ op }) => op === 'test')
  return { kind: 'patch', isHidden, patch }
}

function shownEdit(edit: Uint8Array, isUnmasked: boolean): Shown {
  if (!isUnmasked) return { kind: 'edit', isHidden: true }
  const bytes = Buffer.from(edit).toString('base64')
  const text = textOf(edit)
  return { kind: 'edit', isHidden: false, bytes, ...(text === undefined ? {} : { text }) }
}

/** What is tested is in the body of every dead letter that goes out; what is written is new to it. */
const withoutTested = (one: PatchOperation): PatchOperation | Omit<PatchOperation, 'value'> =>
  one.op === 'test' ? { op: one.op, path: one.path } : one
