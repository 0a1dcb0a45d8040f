import { alertsOf, type CatalogCounts, metricsOf } from '@redrive/catalog'
import { allowedActions, allows } from '../access/allow.ts'
import type { Caller } from '../access/caller.ts'
import { cached } from '../cached.ts'
import type { Handlers } from './handlers.ts'
import type { OperationDeps } from './context.ts'
import { omitUndefined } from './present.ts'
import { sourceStateOf } from './source-state.ts'
import { allowedSources } from './sources.ts'

/** 1 s: every open console requests the counts often, and all can share one result, which has a timestamp. */
const CACHE_MS = 1_000

export function overview({
  catalog,
  identity,
  alertLimits,
  approval,
  brokers,
}: OperationDeps): Handlers<'me' | 'overview' | 'listSources' | 'listExpired' | 'trend'> {
  const countsNow = cached(CACHE_MS, () => catalog.counts())
  const checksNow = cached(CACHE_MS, () => catalog.sourceChecks())
  return {
    async me(caller) {
      const { person, name, via, grants, isAgent } = caller
      const csrf = await identity.csrfOf(caller)
      const copies = grants.map(({ actions, sources }) => ({
        actions: [...actions],
        sources: [...sources],
      }))
      const canApproveOwn = approval === 'anyone' && !isAgent
      return {
        ...{ person, name, via, canApproveOwn, grants: copies },
        ...(csrf === undefined ? {} : { csrf }),
      }
    },

    async overview(caller) {
      const counts = visible(caller, await countsNow())
      const { overThreshold: _, ...metrics } = metricsOf(counts, alertLimits)
      const alerts = [...alertsOf(counts, alertLimits)]
      return {
        at: counts.at,
        ...metrics,
        alerts,
        freezeReason: await catalog.replays.freezeReason(),
      }
    },

    async listSources(caller) {
      const [counts, checks] = await Promise.all([countsNow(), checksNow()])
      const { sources } = visible(caller, counts)
      return {
        sources: sources.map(({ attempts: _, ...one }) => ({
          ...one,
          ...omitUndefined({ broker: brokers.get(one.source) }),
          state: sourceStateOf(one.source, checks),
          permissions: [...allowedActions(caller, one.source)],
        })),
      }
    },

    async listExpired(caller, { query = {} }) {
      const { sources: requested, ...rest } = omitUndefined(query)
      const sources = await allowedSources(catalog, caller, requested)
      if (sources?.length === 0) return { days: [] }
      const page = await catalog.expired({ ...rest, ...omitUndefined({ sources }) })
      return { days: [...page.days], nextCursor: page.nextCursor }
    },

    async trend(caller, { query }) {
      const { sources: requested, ...rest } = omitUndefined(query)
      const sources = await allowedSources(catalog, caller, requested)
      if (sources?.length === 0) return { points: [] }
      return { points: [...(await catalog.trend({ ...rest, ...omitUndefined({ sources }) }))] }
    },
  }
}

/** Returns the counts of the sources that the caller can view. */
function visible(caller: Caller, counts: CatalogCounts): CatalogCounts {
  const isVisible = ({ source }: { readonly source: string }) => allows(caller, 'view', source)
  return {
    ...counts,
    sources: counts.sources.filter(isVisible),
    groups: counts.groups.filter(isVisible),
  }
}
