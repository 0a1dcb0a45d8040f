import { alertsOf, type CatalogCounts, metricsOf } from '@redrive/catalog'
import { allowedActions, allows } from '../access/allow.ts'
import type { Caller } from '../access/caller.ts'
import { cached } from '../cached.ts'
import type { Handlers } from './handlers.ts'
import type { DeskParts } from './parts.ts'
import { present } from './present.ts'
import { narrowed } from './sources.ts'

/** 1 s: every open console asks for it all the time, and all may have the one answer. It says when it was true. */
const KEEP_MS = 1_000

export function overview({
  catalog,
  identity,
  alertLimits,
}: DeskParts): Handlers<'me' | 'overview' | 'listSources' | 'trend'> {
  const countsNow = cached(KEEP_MS, () => catalog.counts())
  return {
    async me(caller) {
      const { person, name, via, grants } = caller
      const csrf = await identity.csrfOf(caller)
      const shown = grants.map(({ actions, sources }) => ({
        actions: [...actions],
        sources: [...sources],
      }))
      return { person, name, via, grants: shown, ...(csrf === undefined ? {} : { csrf }) }
    },

    async overview(caller) {
      const counts = visible(caller, await countsNow())
      const { overThreshold: _, ...metrics } = metricsOf(counts, alertLimits)
      const alerts = [...alertsOf(counts, alertLimits)]
      return {
        at: counts.at,
        ...metrics,
        alerts,
        frozenBecause: await catalog.replays.frozenBecause(),
      }
    },

    async listSources(caller) {
      const { sources } = visible(caller, await countsNow())
      return {
        sources: sources.map(({ attempts: _, ...one }) => ({
          ...one,
          may: [...allowedActions(caller, one.source)],
        })),
      }
    },

    async trend(caller, { query }) {
      const { sources: asked, ...rest } = present(query)
      const sources = await narrowed(catalog, caller, asked)
      if (sources?.length === 0) return { points: [] }
      return { points: [...(await catalog.trend({ ...rest, ...present({ sources }) }))] }
    },
  }
}

/** Of all counts, those of sources that the caller may see. */
function visible(caller: Caller, counts: CatalogCounts): CatalogCounts {
  const isVisible = ({ source }: { readonly source: string }) => allows(caller, 'view', source)
  return {
    ...counts,
    sources: counts.sources.filter(isVisible),
    groups: counts.groups.filter(isVisible),
  }
}
