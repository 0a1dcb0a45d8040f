import type { Output } from '@redrive/api'
import type { Action } from '@redrive/api/enums'
import type { DiscardResult } from '@redrive/catalog'
import { allows } from '../access/allow.ts'
import { ProblemError } from '../access/problem-error.ts'
import { auditedFilter, only } from './audit-facts.ts'
import { type AuditedAction, notFound } from './authorize.ts'
import type { Handlers } from './handlers.ts'
import type { OperationDeps } from './context.ts'
import { omitUndefined } from './present.ts'
import { setOutcomesByFilter } from './outcomes.ts'
import { selectionQuery } from './selection-query.ts'

type Selection = { readonly ids: readonly string[] } | { readonly group: string }
type Settled = Output<'discard'>

/** Operations that select, discard and restore dead letters, or set their outcome. */
export function settle(
  parts: OperationDeps,
): Handlers<'selectDeadLetters' | 'discard' | 'restore' | 'setOutcomes'> {
  const { catalog, guard } = parts
  return {
    async selectDeadLetters(caller, { body: { action, filter } }) {
      const facts = { action, filter: await auditedFilter(parts.sealValue, filter) }
      const audited = { caller, operation: 'selectDeadLetters', facts } as const
      const query = await selectionQuery(parts, audited, filter, ['discard'])
      const found = await guard.mutate(
        audited,
        () => catalog.select({ action, query, by: caller.person }),
        ({ id, sources }) => ({ subject: id, ...omitUndefined({ source: only(sources) }) }),
      )
      return { ...found, sources: [...found.sources] }
    },

    async discard(caller, { body }) {
      const audited = { caller, operation: 'discard' } as const
      if ('selection' in body) return applySelection(parts, audited, body)
      return changeDeadLetters(parts, audited, 'discard', body, (selection) =>
        catalog.discard(selection, { by: caller.person }),
      )
    },

    async restore(caller, { body }) {
      const audited = { caller, operation: 'restore' } as const
      if ('selection' in body) return applySelection(parts, audited, body)
      return changeDeadLetters(parts, audited, 'discard', body, (selection) =>
        catalog.restore(selection, { by: caller.person }),
      )
    },

    async setOutcomes(caller, { body }) {
      const { as } = body
      const audited = { caller, operation: 'setOutcomes', facts: { as } } as const
      if ('filter' in body) return setOutcomesByFilter(parts, audited, body)
      const { ids } = body
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

/** Changes the dead letters of a selection of the caller. The permissions may have changed since, so they are checked again. */
async function applySelection(
  { catalog, guard }: OperationDeps,
  audited: AuditedAction & { readonly operation: 'discard' | 'restore' },
  { selection: id, hash }: { readonly selection: string; readonly hash: string },
): Promise<Settled> {
  const { caller, operation } = audited
  const found = await catalog.selection(id)
  if (found === undefined || found.selectedBy !== caller.person) {
    throw new ProblemError(
      'not_found',
      'This selection does not exist, or another user created it.',
    )
  }
  const { sources, count } = found
  for (const source of sources) await guard.check({ ...audited, subject: id }, source, ['discard'])
  const about = { subject: id, ...omitUndefined({ source: only(sources) }) }
  const done = await guard.mutate({ ...audited, ...about, facts: { sources, count, hash } }, () =>
    catalog.applySelection(operation, id, { hash, by: caller.person }),
  )
  return { ...done, skipped: [...done.skipped] }
}

/** Changes the selected dead letters. It skips ids that do not exist or that the caller cannot view. */
async function changeDeadLetters(
  { catalog, guard }: OperationDeps,
  audited: AuditedAction,
  action: Action,
  selection: Selection,
  work: (selection: Selection) => Promise<DiscardResult>,
): Promise<Settled> {
  if ('group' in selection) {
    const { group } = selection
    const source = await guard.sourceOf(audited, 'group', group, action)
    const done = await guard.mutate({ ...audited, source, subject: group }, () => work(selection))
    return settled(done.changed, done.skipped)
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
  return settled(done.changed, [...hidden, ...done.skipped])
}

const settled = (changed: number, skipped: readonly string[]): Settled => ({
  changed,
  skippedCount: skipped.length,
  skipped: [...skipped],
})

/** Returns the audit facts. They contain all ids, because these were changed. */
function auditFacts(
  sources: readonly string[],
  ids: readonly string[],
  { facts }: AuditedAction,
): Partial<AuditedAction> {
  const one = omitUndefined({ source: only(sources), subject: only(ids) })
  return { ...one, facts: { ...facts, sources, ids } }
}
