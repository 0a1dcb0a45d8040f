import type { ReplayRun } from '@redrive/catalog'
import { type Broken, brokenIf } from '../../drill.ts'
import { atScale, type ByScale } from '../../scenario.ts'
import { lasting } from '../../wait.ts'
import type { Point } from '../options.ts'
import type { Stage } from '../stage.ts'
import { ITEMS, notDone, onEach, type Row, staged, timesOf } from './row.ts'

/** A run for each time, whose publisher dies at the point; another one ends it. */
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
      const broken: Broken[] = []
      for (const [time, ids] of (await staged(stage, times)).entries()) {
        const { id } = await stage.started({ selection: { ids } })
        const point = points[time % points.length] as Point
        // Only publishes are reached once for each item; the other points once in each turn.
        const nth = point.startsWith('publish') ? 1 + (time % ITEMS) : 1
        await stage.crash('publish', { point, nth })
        broken.push(...notDone(await stage.finish(id), `run ${time + 1}, ${point}`))
      }
      return {
        statuses: { resolved: times * ITEMS },
        duplicates: times * duplicatesEach,
        told: [`${times} deaths`],
        broken,
      }
    },
  })
}

const claimed = dying(
  'c03-claimed',
  'the publisher dies with items claimed, or begun and not sent',
  ['claimed', 'begun'],
  0,
)
const sent = dying(
  'c04-sent',
  'the publisher dies when it has sent, before the broker has proven anything, or although nothing arrived',
  ['publish called', 'publish lost'],
  ITEMS,
)
const proven = dying(
  'c05-proven',
  'the publisher dies when the broker has proven what was sent, before it is marked',
  ['publish proven', 'mark wanted'],
  ITEMS,
)

/** Each way to wake up once, or several times. */
const WAKES = { quick: 3, full: 15 } as const

/** What a publisher does whose lease is over when it wakes up. */
const stale = onEach({
  name: 'c09-stale',
  story: 'a publisher stands still past its lease, another takes over, it goes on',
  isInSmoke: true,
  async play(stage) {
    const times = atScale(WAKES, stage.world.scale)
    const broken: Broken[] = []
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
      told: [`${times} woke up too late`],
      broken,
    }
  },
})

async function asleep(stage: Stage, point: Point) {
  const child = stage.worker('publish', { failpoint: { point, nth: 1, what: 'stop' } })
  await child.stopped()
  await stage.lapse()
  return child
}

const unfenced = (fenced: number) =>
  brokenIf([fenced !== ITEMS, 'not fenced', `${fenced} of ${ITEMS} fenced`])

/** It has claimed and not begun: nothing of it may go out. */
async function wakesBeforePublishing(stage: Stage, { id }: ReplayRun): Promise<readonly Broken[]> {
  const first = await asleep(stage, 'claimed')
  const isDone = await stage.finish(id)
  first.signal('SIGCONT')
  const { turn } = await first.heard('turn')
  first.signal('SIGKILL')
  return [...notDone(isDone, 'the second did not finish'), ...unfenced(turn.fenced)]
}

/** It is about to publish what another has published and proven: the same replay ids once more. */
async function wakesToPublish(stage: Stage, { id }: ReplayRun): Promise<readonly Broken[]> {
  const first = await asleep(stage, 'begun')
  const isDone = await stage.finish(id)
  first.signal('SIGCONT')
  const { turn } = await first.heard('turn')
  first.signal('SIGKILL')
  return [...notDone(isDone, 'the second did not finish'), ...unfenced(turn.fenced)]
}

/** It is about to mark what another is about to publish: only the owner may. */
async function wakesToMark(stage: Stage, { id }: ReplayRun): Promise<readonly Broken[]> {
  const first = await asleep(stage, 'mark wanted')
  const second = stage.worker('publish', { failpoint: { point: 'begun', nth: 1, what: 'stop' } })
  await second.stopped()
  await stage.hold()
  first.signal('SIGCONT')
  const { turn } = await first.heard('turn')
  const publishing = await stage.catalog.replays.items({ run: id, states: ['publishing'] })
  second.signal('SIGCONT')
  await second.heard('turn')
  for (const child of [first, second]) child.signal('SIGKILL')
  return [
    ...unfenced(turn.fenced),
    ...brokenIf([
      publishing.length !== ITEMS,
      'not fenced',
      `${ITEMS - publishing.length} were marked by someone who had lost them`,
    ]),
  ]
}

/** 60 a second: a publisher that lives for half a second has some tens of them in hand. */
const RANDOM_RATE = 60
const RANDOM: ByScale<{ readonly items: number; readonly kills: number }> = {
  quick: { items: 80, kills: 4 },
  full: { items: 400, kills: 20 },
}
/** From its first question to the database to the end of its first turn. */
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
      await child.heard('ready')
      const endsAt = performance.now() + Math.random() * LONGEST_MS
      while (performance.now() < endsAt) {
        await stage.settle()
        await lasting(SETTLE_MS)
      }
      child.signal('SIGKILL')
      await child.gone
      await stage.lapse()
    }
    const isDone = await stage.finish(id)
    return {
      statuses: { resolved: items },
      // A turn is a second of publishing.
      duplicates: kills * RANDOM_RATE,
      told: [`${kills} kills`],
      broken: notDone(isDone, 'the run'),
    }
  },
})

const SETTLE_MS = 20

export const PUBLISH: readonly Row[] = [...claimed, ...sent, ...proven, ...stale, ...random]
