import type { Action } from '@redrive/api'
import type { Settled } from '@redrive/catalog'
import { allows } from '../access/allow.ts'
import { only } from './facts.ts'
import { type Deed, notFound } from './guard.ts'
import type { Handlers } from './handlers.ts'
import type { DeskParts } from './parts.ts'
import { present } from './present.ts'

type Selection = { readonly ids: readonly string[] } | { readonly group: string }

/** What people do with dead letters beside replaying them. */
export function settle(parts: DeskParts): Handlers<'discard' | 'restore' | 'decide'> {
  const { catalog } = parts
  return {
    async discard(caller, { body }) {
      const deed = { caller, what: 'discard' } as const
      return settled(parts, deed, 'discard', body, (selection) =>
        catalog.discard(selection, { by: caller.person }),
      )
    },

    async restore(caller, { body }) {
      const deed = { caller, what: 'restore' } as const
      return settled(parts, deed, 'discard', body, (selection) =>
        catalog.restore(selection, { by: caller.person }),
      )
    },

    async decide(caller, { body: { ids, as } }) {
      const deed = { caller, what: 'decide', facts: { as } } as const
      const work = (named: Selection) =>
        catalog.replays.decide('ids' in named ? named.ids : [], { as, by: caller.person })
      const { changed, skipped } = await settled(parts, deed, 'replay', { ids }, work)
      return { decided: changed, skipped }
    },
  }
}

/** Of several, those that the caller may not see are skipped, as those are that do not exist. */
async function settled(
  { catalog, guard }: DeskParts,
  deed: Deed,
  action: Action,
  selection: Selection,
  work: (selection: Selection) => Promise<Settled>,
): Promise<{ changed: number; skipped: string[] }> {
  if ('group' in selection) {
    const { group } = selection
    const source = await guard.sourceOf(deed, 'group', group, action)
    const done = await guard.mutate({ ...deed, source, subject: group }, () => work(selection))
    return { changed: done.changed, skipped: [...done.skipped] }
  }
  const sources = await catalog.sourcesOf('deadLetter', selection.ids)
  const isVisible = (id: string) => allows(deed.caller, 'view', sources.get(id) ?? '')
  const ids = [...new Set(selection.ids)].filter((id) => sources.has(id) && isVisible(id))
  const hidden = selection.ids.filter((id) => !ids.includes(id))
  const named = [...new Set(ids.map((id) => sources.get(id) ?? ''))]
  for (const source of named) await guard.check(deed, source, [action])
  if (ids.length === 0) throw notFound('deadLetter')
  const done = await guard.mutate({ ...deed, ...about(named, ids, deed) }, () => work({ ids }))
  return { changed: done.changed, skipped: [...hidden, ...done.skipped] }
}

/** All ids are written down: they are what was done. */
function about(sources: readonly string[], ids: readonly string[], { facts }: Deed): Partial<Deed> {
  const one = present({ source: only(sources), subject: only(ids) })
  return { ...one, facts: { ...facts, sources, ids } }
}
