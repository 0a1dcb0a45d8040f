import {
  type Alert,
  type AlertLimits,
  ALERT_LIMITS,
  type Background,
  type Catalog,
  startBackground,
  type Trouble,
} from '@redrive/catalog'
import type { Pool } from 'pg'
import type { OpenSource } from '../composition.ts'
import type { Config } from '../config/schema.ts'
import { msOf } from '../config/values.ts'
import { given } from '../given.ts'
import type { ChoreCounts } from '../http/metrics.ts'
import type { ServeRole } from '../serve-role.ts'
import type { Log } from './log.ts'
import type { Ending } from './stopping.ts'
import { tellingTroubles } from './troubles.ts'

export interface WorkParts {
  readonly config: Config
  readonly catalog: Catalog
  readonly pool: Pool
  readonly sources: readonly OpenSource[]
  readonly roles: readonly ServeRole[]
  readonly onAlerts: ((alerts: readonly Alert[]) => Promise<void>) | undefined
  readonly log: Log
}

/** The background work of a process. */
export interface Work {
  counts(): readonly ChoreCounts[]
  /** Each can go on while the others end. */
  endings(drainMs: number): readonly Ending[]
}

/** Each role has a queue of its own: what nobody here does is left to those who do. */
export async function startWork(parts: WorkParts): Promise<Work> {
  const started: Started[] = []
  const onTrouble = tellingTroubles(parts.log)
  try {
    for (const role of parts.roles) {
      if (role === 'api') continue
      started.push({ role, background: await startRole({ ...parts, onTrouble }, role) })
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
        what: `the chores of ${role}`,
        end: () => background.stop({ drain: drainMs }),
      })),
  }
}

interface Started {
  readonly role: ServeRole
  readonly background: Background
}

interface RoleParts extends WorkParts {
  readonly onTrouble: (trouble: Trouble) => void
}

function startRole(parts: RoleParts, role: Exclude<ServeRole, 'api'>): Promise<Background> {
  const { config, catalog, pool, sources, onAlerts, onTrouble } = parts
  const said = given({ onAlerts, witness: config.witness })
  const alertLimits = alertLimitsOf(config)
  return startBackground({ catalog, pool, sources, role, alertLimits, onTrouble, ...said })
}

/** When an alert holds. */
export function alertLimitsOf({ alerts }: Config): AlertLimits {
  const { depth, age, dominanceShare, dominanceCount } = alerts
  const ageMs = age === undefined ? undefined : msOf(age)
  return { ...ALERT_LIMITS, ...given({ depth, ageMs, dominanceShare, dominanceCount }) }
}
