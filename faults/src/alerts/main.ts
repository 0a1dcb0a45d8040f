import type { Subject } from '../harness/play.ts'
import { atScale, type Scenario } from '../harness/scenario.ts'
import type { AlertCase } from './alert-case.ts'
import { DATABASE_OUTAGE } from './cases/database-outage.ts'
import { DEAD_LETTER_FLOOD } from './cases/dead-letter-flood.ts'
import { NOTHING_ASSIGNED } from './cases/nothing-assigned.ts'
import { POISON_MESSAGE } from './cases/poison-message.ts'
import { SET_ASIDE_MESSAGE } from './cases/set-aside-message.ts'
import { STUCK_REPLAY } from './cases/stuck-replay.ts'
import { UNPROVEN_MESSAGE } from './cases/unproven-message.ts'
import { MUTANTS } from './mutants.ts'
import { playCase, sourceOf } from './play-case.ts'
import { FACTOR } from './rules.ts'
import { type Stage, startStage } from './stage.ts'

const CASES: readonly AlertCase[] = [
  DATABASE_OUTAGE,
  POISON_MESSAGE,
  DEAD_LETTER_FLOOD,
  UNPROVEN_MESSAGE,
  STUCK_REPLAY,
  SET_ASIDE_MESSAGE,
  NOTHING_ASSIGNED,
]

/** The stage that the played cases share. It starts when the first of them needs it. */
let stage: Promise<Stage> | undefined

const scenarioOf = (one: AlertCase): Scenario => ({
  name: one.name,
  story: one.story,
  isInSmoke: one.isInSmoke ?? false,
  // Each case has a separate source, so they can be played concurrently. The short ones take as long as a long one.
  lane: () => (one.isLong === true ? one.name : 'short'),
  async play({ scale }) {
    stage ??= startStage(CASES.map(sourceOf), atScale(FACTOR, scale))
    const { row, broken } = await playCase(one, await stage)
    return { events: 1, figures: [row.slice(1).join(' | ')], broken, row }
  },
})

export const ALERTS: Subject = {
  name: 'alerts',
  scenarios: CASES.map(scenarioOf),
  mutants: MUTANTS,
  services: ['postgres', 'rabbitmq', 'kafka', 'prometheus', 'alertmanager'],
  columns: [
    'case',
    'alerts',
    'allowed',
    'fired after',
    'source and runbook',
    'others',
    'resolved after',
  ],
  async end() {
    const started = stage
    stage = undefined
    await (await started)?.end()
  },
}
