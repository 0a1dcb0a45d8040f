import { setTimeout as after } from 'node:timers/promises'
import type { Catalog } from '../catalog.ts'
import type { Ingested } from '../ingest/ingest.ts'
import type { IngestOptions } from '../ingest/options.ts'
import type { Replayer, ReplaySource } from '../replay/replayer.ts'
import { together } from '../together.ts'
import { type Alert, type AlertLimits, alertsOf } from '../watch/metrics.ts'

/** A source whose dead letters are taken over, and replayed into. */
export interface BackgroundSource extends ReplaySource {
  /** How its dead letters are ingested. Default: as `ingest()` does. */
  readonly ingest?: Omit<IngestOptions, 'name' | 'signal'>
}

export interface BackgroundParts {
  readonly catalog: Catalog
  readonly sources: readonly BackgroundSource[]
  readonly replayer: Replayer
  /** Told of every alert that holds, once a minute. */
  readonly onAlerts?: (alerts: readonly Alert[]) => Promise<void>
  readonly alertLimits?: AlertLimits
  readonly onTrouble?: (trouble: Trouble) => void
}

/** A chore that failed. It is done again. */
export interface Trouble {
  readonly chore: string
  /** Undefined: it is not about one source. */
  readonly source: string | undefined
  readonly error: unknown
}

/** One kind of background work: for each source by itself, or for all. */
export type Chore = {
  /** Each process asks for it this often. */
  readonly everyMs: number
} & (
  | { readonly runFor: (one: BackgroundSource, at: At) => Promise<unknown> }
  | { readonly run: (at: At) => Promise<unknown> }
)

interface At extends BackgroundParts {
  readonly signal: AbortSignal
}

/** 5 s: how long work that is never finished goes on before it is asked for again. */
const SHIFT_MS = 5_000
/** 100 ms between two looks when there was nothing: an approved run begins that soon. */
const LOOK_MS = 100
/** 20 ms while proofs come: a run goes no faster than they do, because only so many may be without. */
const BUSY_MS = 20
/** 1 s: what is overdue has waited for minutes, and a run that is over can wait a moment. */
const SWEEP_MS = 1_000
/** 500 ms: a dead letter is in the catalog about that long after its failure. */
const INGEST_MS = 500

/** All there is. Each may run in several processes at once: that is how it scales. */
export const CHORES: Readonly<Record<string, Chore>> = {
  ingest: {
    everyMs: SHIFT_MS,
    runFor: (one, { catalog, signal }) =>
      shift(signal, async () => (isBusy(await ingestOne(catalog, one, signal)) ? true : INGEST_MS)),
  },
  publish: {
    everyMs: SHIFT_MS,
    run: ({ replayer, signal }) =>
      shift(signal, async () => ((await replayer.turn(signal)) === undefined ? LOOK_MS : true)),
  },
  settle: {
    everyMs: SHIFT_MS,
    runFor: (one, { replayer, signal }) => shift(signal, settling(replayer, nameOf(one))),
  },
  upkeep: {
    everyMs: 3_600_000,
    run: ({ catalog }) => catalog.maintain(),
  },
  watch: {
    everyMs: 60_000,
    run: async ({ catalog, onAlerts, alertLimits }) => {
      if (onAlerts === undefined) return
      const alerts = alertsOf(await catalog.counts(), alertLimits)
      if (alerts.length > 0) await onAlerts(alerts)
    },
  },
  auto_replay: {
    everyMs: 30_000,
    run: ({ catalog, sources }) => catalog.replays.autoReplay(sources),
  },
}

/** Rejects when it failed, after it has told of it. A source in trouble does not keep the others from their work. */
export async function runChore(name: string, chore: Chore, at: At): Promise<void> {
  const told = async (source: string | undefined, work: () => Promise<unknown>) => {
    try {
      await work()
    } catch (error) {
      at.onTrouble?.({ chore: name, source, error })
      throw error
    }
  }
  if ('run' in chore) return told(undefined, () => chore.run(at))
  await together(at.sources, (one) => told(nameOf(one), () => chore.runFor(one, at)))
}

const nameOf = (one: BackgroundSource) => one.name ?? one.source.source

/** Who does which chores. A process that has one of these roles leaves the others alone. */
export const CHORES_OF: Readonly<Record<BackgroundRole, readonly string[]>> = {
  all: Object.keys(CHORES),
  ingest: ['ingest'],
  replay: ['publish', 'settle', 'auto_replay'],
  watch: ['upkeep', 'watch'],
}
export type BackgroundRole = 'all' | 'ingest' | 'replay' | 'watch'

function settling(replayer: Replayer, name: string): () => Promise<number> {
  let sweepAt = 0
  return async () => {
    if (performance.now() >= sweepAt) {
      sweepAt = performance.now() + SWEEP_MS
      await replayer.sweep(name)
    }
    const { resolved, expired } = await replayer.confirm(name)
    return resolved + expired > 0 ? BUSY_MS : LOOK_MS
  }
}

const ingestOne = (catalog: Catalog, one: BackgroundSource, signal: AbortSignal) =>
  catalog.ingest(one.source, {
    ...one.ingest,
    ...(one.name === undefined ? {} : { name: one.name }),
    signal,
  })

const isBusy = ({ added, refailed, known }: Ingested) => added + refailed + known > 0

/** Works for a while; `step` says how long to wait, or true when there is more to do at once. */
async function shift(signal: AbortSignal, step: () => Promise<true | number>): Promise<void> {
  const endsAt = performance.now() + SHIFT_MS
  while (!signal.aborted && performance.now() < endsAt) {
    const rest = await step()
    if (rest !== true) await pause(rest, signal)
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  // It rejects when the signal fires, which is what the loop looks at anyway.
  await after(ms, undefined, { signal }).catch(() => undefined)
}
