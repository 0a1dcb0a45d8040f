import type { Action } from '@redrive/api/enums'
import type { DiscardResult } from '@redrive/catalog'
import { allows } from '../access/allow.ts'
import { only } from './audit-facts.ts'
import { type AuditedAction, notFound } from './authorize.ts'
import type { Handlers } from './handlers.ts'
import type { OperationDeps } from './context.ts'
import { omitUndefined } from './present.ts'

type Selection = { readonly ids: readonly string[] } | { readonly group: string }

/** Operations that discard, restore, or set the outcome of dead letters. */
export function settle(parts: OperationDeps): Handlers<'discard' | 'restore' | 'setOutcomes'> {
  const { catalog } = parts
  return {
    async discard(caller, { body }) {
      const audited = { caller, operation: 'discard' } as const
      return changeDeadLetters(parts, audited, 'discard', body, (selection) =>
        catalog.discard(selection, { by: caller.person }),
      )
    },

    async restore(caller, { body }) {
      const audited = { caller, operation: 'restore' } as const
      return changeDeadLetters(parts, audited, 'discard', body, (selection) =>
        catalog.restore(selection, { by: caller.person }),
      )
    },

    async setOutcomes(caller, { body: { ids, as } }) {
      const audited = { caller, operation: 'setOutcomes', facts: { as } } as const
      const work = (selection: Selection) =>
        catalog.replays.setOutcome('ids' in selection ? selection.ids : [], {
          as,
          by: caller.person,
        })
      const { changed, skipped } = await changeDeadLetters(parts, audited, 'replay', { ids }, work)
      return { changed, skipped }
    },
  }
}

/** Changes the selected dead letters. It skips ids that do not exist or that the caller cannot view. */
async function changeDeadLetters(
  { catalog, guard }: OperationDeps,
  audited: AuditedAction,
  action: Action,
  selection: Selection,
  work: (selection: Selection) => Promise<DiscardResult>,
): Promise<{ changed: number; skipped: string[] }> {
  if ('group' in selection) {
    const { group } = selection
    const source = await guard.sourceOf(audited, 'group', group, action)
    const done = await guard.mutate({ ...audited, source, subject: group }, () => work(selection))
    return { changed: done.changed, skipped: [...done.skipped] }
  }
  const sources = await catalog.sourcesOf('deadLetter', selection.ids)
  const isVisible = (id: string) => allows(audited.caller, 'view', sources.get(id) ?? '')
  const ids = [...new Set(selection.ids)].filter((id) => sources.has(id) && isVisible(id))
  const hidden = selection.ids.filter((id) => !ids.includes(id))
  const involved = [...new Set(ids.map((id) => sources.get(id) ?? ''))]
  for (const source of involved) await guard.check(audited, source, [action])
  if (ids.length === 0) throw notFound('deadLetter')
  const done = await guard.mutate({ ...audited, ...auditFacts(involved, ids, audited) }, () =>
    work({ ids }),
  )
  return { changed: done.changed, skipped: [...hidden, ...done.skipped] }
}

/** Returns the audit facts. They contain all ids, because these were changed. */
function auditFacts(
  sources: readonly string[],
  ids: readonly string[],
  { facts }: AuditedAction,
): Partial<AuditedAction> {
  const one = omitUndefined({ source: only(sources), subject: only(ids) })
  return { ...one, facts: { ...facts, sources, ids } }
}
