import {
  ALERT_LIMITS,
  type AlertLimits,
  type Catalog,
  limitsOf,
  type NotableGroup,
  type SourceReplayStats,
} from '@redrive/catalog'
import { FAILURE_CLASSES } from '@redrive/core'
import { Counter, Gauge, type Registry } from 'prom-client'
import { cached } from '../cached.ts'

export interface CatalogDeps {
  readonly catalog: Pick<Catalog, 'counts' | 'replayStats'>
  /** Thresholds of alerts, so that the rules of Prometheus use the same ones. Default: those of the catalog. */
  readonly alertLimits?: AlertLimits
}

/** 5 s: Prometheus scrapes every 15 to 60 s, and there may be several instances. */
export const CACHE_MS = 5_000
/** 500 sources with one series per class. Further sources are counted as `other`. */
export const MAX_SOURCES = 500
const OTHER = 'other'

interface CatalogStats {
  readonly counts: Awaited<ReturnType<Catalog['counts']>>
  readonly replayed: readonly SourceReplayStats[]
}

/** Shown also when the catalog cannot be read. */
export const DATABASE_UP = {
  name: 'redrive_database_up',
  help: '1 if the catalog can be read. If it is 0, the metrics of the catalog are absent.',
} as const

/** Metrics that are one count of each source. */
const SOURCE_COUNTS = [
  {
    metric: Gauge,
    name: 'redrive_replaying_dead_letters',
    count: 'replaying',
    help: 'Dead letters that are being replayed.',
  },
  {
    metric: Gauge,
    name: 'redrive_undecided_dead_letters',
    count: 'undecided',
    help: 'Dead letters whose replay has an unknown outcome.',
  },
  {
    metric: Gauge,
    name: 'redrive_set_aside_messages',
    count: 'setAside',
    help: 'Messages that are set aside and neither replayed nor discarded.',
  },
  {
    metric: Gauge,
    name: 'redrive_dead_letters_expiring',
    count: 'expiring',
    help: 'Open and unknown dead letters that retention deletes within 7 days; counted every hour.',
  },
  {
    metric: Counter,
    name: 'redrive_replay_mismatches_total',
    count: 'mismatches',
    help: 'Confirmations and returned messages with the replay id of another message.',
  },
] as const
/** Groups that began or came back within the last minutes. */
const FRESH_GROUPS = [
  {
    name: 'redrive_new_groups',
    help: 'Failure groups with a new signature in the last 10 minutes, without muted ones.',
    since: ({ createdAt }: NotableGroup) => createdAt,
  },
  {
    name: 'redrive_regressed_groups',
    help: 'Resolved failure groups that failed again in the last 10 minutes, without muted ones.',
    since: ({ regressedAt }: NotableGroup) => regressedAt,
  },
] as const

/** The thresholds of the config. */
const THRESHOLDS = [
  {
    name: 'redrive_dead_letters_threshold',
    help: 'Number of open dead letters of the source from which an alert is raised.',
    of: ({ depth }: AlertLimits) => depth,
  },
  {
    name: 'redrive_oldest_dead_letter_age_threshold_seconds',
    help: 'Age of the oldest open dead letter of the source from which an alert is raised.',
    of: ({ ageMs }: AlertLimits) => ageMs / 1_000,
  },
] as const

/** The final states of a replay item. */
const ENDS = [
  'resolved',
  'failed_again',
  'unknown',
  'not_returned',
  'expired',
  'skipped',
  'cancelled',
] as const

/** Adds the metrics of the catalog. They share one cached query. If it fails, only `redrive_database_up` is present. */
export function addCatalog(
  registry: Registry,
  { catalog, alertLimits = ALERT_LIMITS }: CatalogDeps,
): void {
  const load = cached(CACHE_MS, async (): Promise<CatalogStats> => {
    const [counts, replayed] = await Promise.all([catalog.counts(), catalog.replayStats()])
    return { counts, replayed }
  })
  const read = () => load().catch(() => undefined)
  const registers = [registry]
  new Gauge({
    ...DATABASE_UP,
    registers,
    async collect() {
      this.set((await read()) === undefined ? 0 : 1)
    },
  })
  new Gauge({
    name: 'redrive_dead_letters',
    help: 'Open dead letters.',
    labelNames: ['source', 'class'],
    registers,
    async collect() {
      const stats = await read()
      this.reset()
      for (const { source, openByClass } of bounded(stats?.counts.sources)) {
        for (const name of FAILURE_CLASSES) {
          this.inc({ source, class: name }, openByClass[name] ?? 0)
        }
      }
    },
  })
  for (const { metric: Metric, name, help, count } of SOURCE_COUNTS) {
    new Metric({
      name,
      help,
      labelNames: ['source'],
      registers,
      async collect() {
        const stats = await read()
        this.reset()
        for (const one of bounded(stats?.counts.sources)) {
          this.inc({ source: one.source }, one[count])
        }
      },
    })
  }
  for (const { name, help, since } of FRESH_GROUPS) {
    new Gauge({
      name,
      help,
      labelNames: ['source'],
      registers,
      async collect() {
        const { at = 0, sources, groups = [] } = (await read())?.counts ?? {}
        this.reset()
        for (const { source, of } of bounded(sources?.map((one) => ({ ...one, of: one.source })))) {
          const ofSource = groups.filter((one) => one.source === of && !one.isMuted)
          this.inc(
            { source },
            ofSource.filter((one) => at - (since(one) ?? 0) < alertLimits.freshMs).length,
          )
        }
      },
    })
  }
  for (const { name, help, of } of THRESHOLDS) {
    new Gauge({
      name,
      help,
      labelNames: ['source'],
      registers,
      async collect() {
        const stats = await read()
        this.reset()
        for (const { source } of bounded(stats?.counts.sources)) {
          this.set({ source }, of(limitsOf(alertLimits, source)))
        }
      },
    })
  }
  new Gauge({
    name: 'redrive_oldest_dead_letter_age_seconds',
    help: 'Time since the last failure of the oldest open dead letter; 0 if none is open.',
    labelNames: ['source'],
    registers,
    async collect() {
      const stats = await read()
      this.reset()
      for (const [source, oldestAt] of oldestOf(bounded(stats?.counts.sources))) {
        this.set({ source }, ageOf(stats?.counts.at, oldestAt))
      }
    },
  })
  new Gauge({
    name: 'redrive_last_ingest_timestamp_seconds',
    help: 'Time of the last ingested dead letter of a source; absent before the first one.',
    labelNames: ['source'],
    registers,
    async collect() {
      const stats = await read()
      this.reset()
      for (const { source, lastIngestedAt } of bounded(stats?.counts.sources)) {
        if (lastIngestedAt !== undefined) this.set({ source }, lastIngestedAt / 1_000)
      }
    },
  })
  new Counter({
    name: 'redrive_replay_items_total',
    help: 'Replay items by final outcome.',
    labelNames: ['source', 'outcome'],
    registers,
    async collect() {
      const stats = await read()
      this.reset()
      for (const { source, items } of bounded(stats?.replayed)) {
        for (const outcome of ENDS) this.inc({ source, outcome }, items[outcome])
      }
    },
  })
}

/** Renames the sources above the limit to `other`. */
const bounded = <T extends { readonly source: string }>(sources: readonly T[] = []): readonly T[] =>
  sources.map((one, at) => (at < MAX_SOURCES ? one : { ...one, source: OTHER }))

function oldestOf(
  sources: readonly { readonly source: string; readonly oldestAt: number | undefined }[],
): ReadonlyMap<string, number> {
  const oldest = new Map<string, number>()
  for (const { source, oldestAt = Number.POSITIVE_INFINITY } of sources) {
    oldest.set(source, Math.min(oldest.get(source) ?? Number.POSITIVE_INFINITY, oldestAt))
  }
  return oldest
}

const ageOf = (at = 0, oldestAt: number) =>
  Number.isFinite(oldestAt) ? Math.max(0, at - oldestAt) / 1_000 : 0
