import type { IngestResult, ReplayRun } from '@redrive/catalog'
import { brokenIf, type Violation } from '../../evidence/evidence.ts'
import type { Stage } from '../stage.ts'
import { notDone, onEach, type Row } from './row.ts'

/** Number of messages: two batches of an ingest. */
const BATCHES = 20

/** A dead member of a group keeps its partitions for 10 s. */
const ingestTimes = ({ where, world }: Stage): number =>
  world.scale !== 'full' ? 1 : where.kind === 'kafka' ? 5 : 20

const committed = onEach({
  name: 'c06-ingested',
  story: 'the ingest dies after its commit and before the release at the broker',
  isInSmoke: true,
  async play(stage) {
    const times = ingestTimes(stage)
    const known: number[] = []
    for (let time = 0; time < times; time++) {
      await stage.fill(BATCHES)
      await stage.crash('ingest', { point: 'ingest committed', nth: 1 })
      known.push((await takenOver(stage)).known)
    }
    return {
      statuses: { open: times * BATCHES },
      duplicates: 0,
      figures: [
        `${times} deaths, ${known.reduce((sum, one) => sum + one, 0)} recognised when they were delivered again`,
      ],
      broken: brokenIf([known.includes(0), 'scenario', 'nothing was delivered again']),
    }
  },
})

/**
 * Ingests until the broker has no dead letter left. Those of a dead group member arrive when the
 * group notices the death.
 */
async function takenOver(stage: Stage): Promise<IngestResult> {
  const total = { added: 0, failedAgain: 0, known: 0, setAside: 0 }
  do {
    const one = await stage.catalog.ingest(stage.source)
    total.added += one.added
    total.known += one.known
    total.failedAgain += one.failedAgain
  } while ((await stage.source.depth()) > 0)
  return total
}

const uncommitted: Row = {
  name: 'c07-not-ingested',
  story: 'the ingest dies before its commit: the broker must still have the dead letters',
  isInSmoke: true,
  kind: 'rabbitmq',
  async play(stage) {
    const times = ingestTimes(stage)
    for (let time = 0; time < times; time++) {
      await stage.fill(BATCHES)
      await stage.crash('ingest', { point: 'ingest not committed', nth: 1 + (time % 2) })
      await takenOver(stage)
    }
    return { statuses: { open: times * BATCHES }, duplicates: 0, figures: [`${times} deaths`] }
  },
}

/** Replays all dead letters once. They fail again and wait in the broker. */
async function replayAndFail(stage: Stage, count: number): Promise<ReplayRun> {
  const run = await stage.started({ overrides: ['failed_recently'] })
  await stage.replayer.turn()
  await stage.waiting(count)
  return run
}

const replaysFailAgain = onEach({
  name: 'c13-failed-again',
  story:
    'replays fail again, and the ingest of the new failures dies before the release at the broker',
  isInSmoke: true,
  async play(stage) {
    const count = BATCHES
    await stage.fill(count, 2)
    await stage.ingest()
    const first = await replayAndFail(stage, count)
    await stage.crash('ingest', { point: 'ingest committed', nth: 1 })
    const isFirstDone = await stage.finish(first.id)
    const failedAgain = (await stage.catalog.replays.run(first.id))?.counts.failed_again
    const cycles = await cyclesOf(stage)
    const second = await stage.started({ overrides: ['failed_recently'] })
    const isSecondDone = await stage.finish(second.id)
    return {
      statuses: { resolved: count },
      duplicates: 0,
      figures: [`${failedAgain} failed again`],
      broken: [
        ...notDone(isFirstDone && isSecondDone, 'the runs'),
        ...brokenIf(
          [failedAgain !== count, 'in the wrong place', `${failedAgain} of ${count} failed again`],
          [cycles !== '2', 'in the wrong place', `cycles ${cycles} instead of 2`],
        ),
      ],
    }
  },
})

const CYCLES = `
select string_agg(distinct d.cycle::text, ', ') as cycles from redrive_catalog.dead_letter d
  join redrive_catalog.source s on s.id = d.source_id where s.name = $1`

async function cyclesOf({ pool, where }: Stage): Promise<string | undefined> {
  const { rows } = await pool.query<{ cycles: string }>(CYCLES, [where.queue])
  return rows[0]?.cycles
}

const LOOPS = 3

const looping: Row = {
  name: 'c14-loop',
  story: 'replays fail again in every cycle, and a publisher dies in each cycle',
  kind: 'rabbitmq',
  async play(stage) {
    const count = 3
    const broken: Violation[] = []
    await stage.fill(count, Number.MAX_SAFE_INTEGER)
    await stage.ingest()
    for (let loop = 0; loop < LOOPS; loop++) {
      const { id } = await stage.started({ overrides: ['failed_recently'] })
      await stage.crash('publish', { point: 'mark wanted', nth: 1 })
      broken.push(...notDone(await stage.finish(id), `cycle ${loop + 1}`))
    }
    const last = await stage.catalog.replays.plan(
      await stage.request({ overrides: ['failed_recently'] }),
    )
    const stopped = last.skipped['too_many_cycles']
    return {
      statuses: { open: count },
      duplicates: LOOPS * count,
      figures: [`${stopped} refused after ${LOOPS}`],
      broken: [
        ...broken,
        ...brokenIf([
          stopped !== count,
          'storm',
          `${stopped} of ${count} are refused: ${JSON.stringify(last.skipped)}`,
        ]),
      ],
    }
  },
}

export const INGEST: readonly Row[] = [...committed, uncommitted, ...replaysFailAgain, looping]
