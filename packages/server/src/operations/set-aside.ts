import type { Action } from '@redrive/api/enums'
import type { DiscardResult } from '@redrive/catalog'
import { allows } from '../access/allow.ts'
import { only } from './audit-facts.ts'
import { type AuditedAction, notFound } from './authorize.ts'
import type { OperationDeps } from './context.ts'
import type { Handlers } from './handlers.ts'
import { PiecewiseOutput } from './piecewise.ts'
import { omitUndefined } from './present.ts'
import { shownSetAside } from './shown.ts'
import { allowedSources } from './sources.ts'

type SetAsideOperation =
  | 'listSetAside'
  | 'getSetAside'
  | 'getSetAsidePayload'
  | 'replaySetAside'
  | 'approveSetAside'
  | 'discardSetAside'
  | 'reopenSetAside'

/** Operations on messages that could not be catalogued as dead letters. */
export function setAside(deps: OperationDeps): Handlers<SetAsideOperation> {
  const { catalog, guard, reading } = deps
  return {
    async listSetAside(caller, { query = {} }) {
      const { sources: requested, ...rest } = omitUndefined(query)
      const sources = await allowedSources(catalog, caller, requested)
      if (sources?.length === 0) return { messages: [] }
      const page = await catalog.setAside.list({ ...rest, ...omitUndefined({ sources }) })
      return {
        messages: page.messages.map((one) => shownSetAside(reading, one)),
        nextCursor: page.nextCursor,
      }
    },

    async getSetAside(caller, { params: { id } }) {
      await guard.sourceOf({ caller, operation: 'getSetAside', subject: id }, 'setAside', id)
      const found = await catalog.setAside.get(id)
      if (found === undefined) throw notFound('setAside')
      return shownSetAside(reading, found)
    },

    async getSetAsidePayload(caller, { params: { id }, query: { reason } }) {
      const facts = { reason }
      const audited = { caller, operation: 'getSetAsidePayload', subject: id, facts } as const
      const source = await guard.sourceOf(audited, 'setAside', id, 'view_unmasked')
      const found = await catalog.setAside.open(id)
      if (found === undefined) throw notFound('setAside')
      await guard.unmask({ ...audited, source })
      const { encodedHeaders, drained } = found
      const envelope = drained && { ...drained.envelope }
      const fields = omitUndefined({ encodedHeaders, envelope })
      return new PiecewiseOutput(fields, found.pieces, { withText: false })
    },

    replaySetAside: (caller, { body: { ids, withoutHeaders = [] } }) => {
      const audited = { caller, operation: 'replaySetAside', facts: { withoutHeaders } } as const
      // A message without some of its headers is a changed message.
      const actions: readonly Action[] =
        withoutHeaders.length === 0 ? ['replay'] : ['replay', 'edit']
      return change(deps, audited, actions, ids, (own) =>
        catalog.setAside.requestReplay(own, { by: caller.person, withoutHeaders }),
      )
    },
    approveSetAside: (caller, { body: { ids, withoutHeaders = [] } }) => {
      const audited = { caller, operation: 'approveSetAside', facts: { withoutHeaders } } as const
      return change(deps, audited, ['approve'], ids, (own) =>
        catalog.setAside.approve(own, { by: caller.person, withoutHeaders }),
      )
    },
    discardSetAside: (caller, { body: { ids } }) =>
      change(deps, { caller, operation: 'discardSetAside' }, ['discard'], ids, (own) =>
        catalog.setAside.discard(own, { by: caller.person }),
      ),
    reopenSetAside: (caller, { body: { ids } }) =>
      change(deps, { caller, operation: 'reopenSetAside' }, ['discard'], ids, (own) =>
        catalog.setAside.reopen(own, { by: caller.person }),
      ),
  }
}

/** Changes the messages with these ids. It skips ids that do not exist or that the caller cannot view. */
async function change(
  { catalog, guard }: OperationDeps,
  audited: AuditedAction,
  actions: readonly Action[],
  requested: readonly string[],
  work: (ids: readonly string[]) => Promise<DiscardResult>,
): Promise<{ changed: number; skipped: string[] }> {
  const sources = await catalog.sourcesOf('setAside', requested)
  const isVisible = (id: string) =>
    sources.has(id) && allows(audited.caller, 'view', sources.get(id) ?? '')
  const ids = [...new Set(requested)].filter(isVisible)
  const involved = [...new Set(ids.map((id) => sources.get(id) ?? ''))]
  for (const source of involved) await guard.check(audited, source, actions)
  if (ids.length === 0) throw notFound('setAside')
  const one = omitUndefined({ source: only(involved), subject: only(ids) })
  const facts = { ...audited.facts, sources: involved, ids }
  const done = await guard.mutate({ ...audited, ...one, facts }, () => work(ids))
  return {
    changed: done.changed,
    skipped: [...requested.filter((id) => !ids.includes(id)), ...done.skipped],
  }
}
