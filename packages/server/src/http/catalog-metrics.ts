import type { Catalog, SourceReplayStats } from '@redrive/catalog'
import { FAILURE_CLASSES } from '@redrive/core'
import { Counter, Gauge, type Registry } from 'prom-client'
import { cached } from '../cached.ts'

export interface CatalogDeps {
  readonly catalog: Pick<Catalog, 'counts' | 'replayStats'>
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
export function addCatalog(registry: Registry, { catalog }: CatalogDeps): void {
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
