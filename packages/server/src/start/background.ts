import {
  type Alert,
  type AlertLimits,
  ALERT_LIMITS,
  type AutoReplayRun,
  type Background,
  type Catalog,
  startBackground,
  type JobFailure,
} from '@redrive/catalog'
import type { Pool } from 'pg'
import type { OpenSource } from '../composition.ts'
import type { Config } from '../config/schema.ts'
import { msOf } from '../config/values.ts'
import { omitUndefined } from '../omit-undefined.ts'
import type { ChoreCounts } from '../http/metrics.ts'
import type { ServeRole } from '../serve-role.ts'
import type { Log } from './log.ts'
import type { ShutdownTask } from './shutdown.ts'
import { logJobFailures } from './log-job-failures.ts'

/** Dependencies of the background jobs. */
export interface BackgroundDeps {
  readonly config: Config
  readonly catalog: Catalog
  readonly pool: Pool
  readonly sources: readonly OpenSource[]
  readonly roles: readonly ServeRole[]
  readonly onAlerts: ((alerts: readonly Alert[]) => Promise<void>) | undefined
  /** Checks and records an automatic replay run before it starts. */
  readonly onAutoReplay: (run: AutoReplayRun) => Promise<void>
  readonly log: Log
}

/** The background jobs of a process. */
export interface Work {
  counts(): readonly ChoreCounts[]
  /** Returns one shutdown task per role. The tasks can run concurrently. */
  endings(drainMs: number): readonly ShutdownTask[]
}

/** Starts the background jobs of every role. Each role has a separate queue, so other processes run the rest. */
export async function startWork(parts: BackgroundDeps): Promise<Work> {
  const started: StartedRole[] = []
  const onJobFailure = logJobFailures(parts.log)
  try {
    for (const role of parts.roles) {
      if (role === 'api') continue
      started.push({ role, background: await startRole({ ...parts, onJobFailure }, role) })
    }
  } catch (error) {
    await Promise.all(started.map(({ background }) => background.stop()))
    throw error
  }
  return {
    counts: () =>
      started.map(({ role, background }) => {
        const { handled, failed } = background.consumer.stats()
        return { role, handled, failed }
      }),
    endings: (drainMs) =>
      started.map(({ role, background }) => ({
        what: `background jobs of role ${role}`,
        end: () => background.stop({ drain: drainMs }),
      })),
  }
}

interface StartedRole {
  readonly role: ServeRole
  readonly background: Background
}

interface RoleDeps extends BackgroundDeps {
  readonly onJobFailure: (failure: JobFailure) => void
}

function startRole(parts: RoleDeps, role: Exclude<ServeRole, 'api'>): Promise<Background> {
  const { config, catalog, pool, sources, onAlerts, onAutoReplay, onJobFailure } = parts
  const optional = omitUndefined({ onAlerts, restoreMarkerFile: config.restoreMarkerFile })
  const alertLimits = alertLimitsOf(config)
  const callbacks = { onJobFailure, onAutoReplay }
  return startBackground({ catalog, pool, sources, role, alertLimits, ...callbacks, ...optional })
}

/** Returns the alert thresholds: the defaults, replaced by those of the config and of each source. */
export function alertLimitsOf({ alerts, sources }: Config): AlertLimits {
  const ofSources = Object.entries(sources).map(
    ([name, one]) => [name, limitsIn(one.alerts ?? {})] as const,
  )
  return { ...ALERT_LIMITS, ...limitsIn(alerts), sources: Object.fromEntries(ofSources) }
}

type Thresholds = Pick<Config['alerts'], 'depth' | 'age' | 'dominanceShare' | 'dominanceCount'>

function limitsIn({
  depth,
  age,
  dominanceShare,
  dominanceCount,
}: Thresholds): Partial<AlertLimits> {
  const ageMs = age === undefined ? undefined : msOf(age)
  return omitUndefined({ depth, ageMs, dominanceShare, dominanceCount })
}
