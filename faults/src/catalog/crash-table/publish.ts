import type { ReplayRun } from '@redrive/catalog'
import { brokenIf, type Violation } from '../../evidence/evidence.ts'
import { atScale, type ByScale } from '../../harness/scenario.ts'
import { lasting } from '../../harness/wait.ts'
import type { Point } from '../options.ts'
import type { Stage } from '../stage.ts'
import { ITEMS, notDone, onEach, type Row, staged, timesOf } from './row.ts'

/**
 * Starts one run for each time. Its publisher dies at the point; another publisher finishes the
 * run.
 */
function dying(
  name: string,
  story: string,
  points: readonly Point[],
  duplicatesEach: number,
): readonly Row[] {
  return onEach({
    name,
    story,
    isInSmoke: true,
    async play(stage) {
      const times = timesOf(stage)
      const broken: Violation[] = []
      for (const [time, ids] of (await staged(stage, times)).entries()) {
        const { id } = await stage.started({ selection: { ids } })
        const point = points[time % points.length] as Point
        // Publish points are reached once for each item; the other points once in each turn.
        const nth = point.startsWith('publish') ? 1 + (time % ITEMS) : 1
        await stage.crash('publish', { point, nth })
        broken.push(...notDone(await stage.finish(id), `run ${time + 1}, ${point}`))
      }
      return {
        statuses: { resolved: times * ITEMS },
        duplicates: times * duplicatesEach,
        figures: [`${times} deaths`],
        broken,
      }
    },
  })
}

const claimed = dying(
  'c03-claimed',
  'the publisher dies after it claimed items, or started them without sending',
  ['claimed', 'begun'],
  0,
)
const sent = dying(
  'c04-sent',
  'the publisher dies after sending, before the broker confirms, or when nothing arrived',
  ['publish called', 'publish lost'],
  ITEMS,
)
const proven = dying(
  'c05-proven',
  'the publisher dies after the broker confirmed and before it marks the items',
  ['publish proven', 'mark wanted'],
  ITEMS,
)

/** Number of times that each way to wake up is played. */
const WAKES = { quick: 3, full: 15 } as const

/** A publisher continues after its lease has expired. */
const stale = onEach({
  name: 'c09-stale',
  story: 'a publisher is stopped past its lease, another takes over, then the first continues',
  isInSmoke: true,
  async play(stage) {
    const times = atScale(WAKES, stage.world.scale)
    const broken: Violation[] = []
    const wakes = [wakesBeforePublishing, wakesToMark, wakesToPublish]
    for (const [time, ids] of (await staged(stage, times)).entries()) {
      const run = await stage.started({ selection: { ids } })
      const wake = wakes[time % wakes.length] as typeof wakesToMark
      broken.push(...(await wake(stage, run)))
      broken.push(...notDone(await stage.finish(run.id), `run ${time + 1}`))
    }
    return {
      statuses: { resolved: times * ITEMS },
      duplicates: times * ITEMS,
      figures: [`${times} continued too late`],
      broken,
    }
  },
})

async function asleep(stage: Stage, point: Point) {
  const child = stage.worker('publish', { failpoint: { point, nth: 1, what: 'stop' } })
  await child.stopped()
  await stage.expireLeases()
  return child
}

const unfenced = (fenced: number) =>
  brokenIf([fenced !== ITEMS, 'not fenced', `${fenced} of ${ITEMS} fenced`])

/** It has claimed items and not started them. None of them may be published. */
async function wakesBeforePublishing(
  stage: Stage,
  { id }: ReplayRun,
): Promise<readonly Violation[]> {
  const first = await asleep(stage, 'claimed')
  const isDone = await stage.finish(id)
  first.signal('SIGCONT')
  const { turn } = await first.waitFor('turn')
  first.signal('SIGKILL')
  return [...notDone(isDone, 'the second publisher did not finish'), ...unfenced(turn.fenced)]
}

/**
 * It is about to publish what another publisher has published and confirmed: the same replay ids
 * again.
 */
async function wakesToPublish(stage: Stage, { id }: ReplayRun): Promise<readonly Violation[]> {
  const first = await asleep(stage, 'begun')
  const isDone = await stage.finish(id)
  first.signal('SIGCONT')
  const { turn } = await first.waitFor('turn')
  first.signal('SIGKILL')
  return [...notDone(isDone, 'the second publisher did not finish'), ...unfenced(turn.fenced)]
}

/** It is about to mark what another publisher is about to publish. Only the owner may mark it. */
async function wakesToMark(stage: Stage, { id }: ReplayRun): Promise<readonly Violation[]> {
  const first = await asleep(stage, 'mark wanted')
  const second = stage.worker('publish', { failpoint: { point: 'begun', nth: 1, what: 'stop' } })
  await second.stopped()
  await stage.extendLeases()
  first.signal('SIGCONT')
  const { turn } = await first.waitFor('turn')
  const publishing = await stage.catalog.replays.items({ run: id, states: ['publishing'] })
  second.signal('SIGCONT')
  await second.waitFor('turn')
  for (const child of [first, second]) child.signal('SIGKILL')
  return [
    ...unfenced(turn.fenced),
    ...brokenIf([
      publishing.length !== ITEMS,
      'not fenced',
      `${ITEMS - publishing.length} were marked by a publisher that had lost them`,
    ]),
  ]
}

/** 60 per second: a publisher that lives for half a second has some tens of items in flight. */
const RANDOM_RATE = 60
const RANDOM: ByScale<{ readonly items: number; readonly kills: number }> = {
  quick: { items: 80, kills: 4 },
  full: { items: 400, kills: 20 },
}
/** The time from its first query to the end of its first turn. */
const LONGEST_MS = 1_200

const random = onEach({
  name: 'c12-random',
  story: 'publishers are killed at random in the middle of a run',
  async play(stage) {
    const { items, kills } = atScale(RANDOM, stage.world.scale)
    await stage.fill(items)
    await stage.ingest()
    const { id } = await stage.started({ ratePerSecond: RANDOM_RATE })
    for (let kill = 0; kill < kills; kill++) {
      const child = stage.worker('publish')
      await child.waitFor('ready')
      const endsAt = performance.now() + Math.random() * LONGEST_MS
      while (performance.now() < endsAt) {
        await stage.settle()
        await lasting(SETTLE_MS)
      }
      await child.kill()
      await stage.expireLeases()
    }
    const isDone = await stage.finish(id)
    return {
      statuses: { resolved: items },
      // A turn publishes for one second.
      duplicates: kills * RANDOM_RATE,
      figures: [`${kills} kills`],
      broken: notDone(isDone, 'the run'),
    }
  },
})

const SETTLE_MS = 20

export const PUBLISH: readonly Row[] = [...claimed, ...sent, ...proven, ...stale, ...random]
