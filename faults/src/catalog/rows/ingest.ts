import type { Ingested, ReplayRun } from '@redrive/catalog'
import { type Broken, brokenIf } from '../../drill.ts'
import type { Stage } from '../stage.ts'
import { notDone, onEach, type Row } from './row.ts'

/** Two batches of an ingest. */
const BATCHES = 20

/** A dead member of a group keeps its partitions for 10 s. */
const ingestTimes = ({ where, world }: Stage): number =>
  world.scale !== 'full' ? 1 : where.kind === 'kafka' ? 5 : 20

const committed = onEach({
  name: 'c06-ingested',
  story: 'the ingest dies when it has committed, before the broker lets go',
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
      told: [
        `${times} deaths, ${known.reduce((sum, one) => sum + one, 0)} known when they came again`,
      ],
      broken: brokenIf([known.includes(0), 'scenario', 'nothing came again']),
    }
  },
})

/** Until the broker has none left: those of a dead member of a group come when the group notices. */
async function takenOver(stage: Stage): Promise<Ingested> {
  const total = { added: 0, refailed: 0, known: 0, quarantined: 0 }
  do {
    const one = await stage.catalog.ingest(stage.source)
    total.added += one.added
    total.known += one.known
    total.refailed += one.refailed
  } while ((await stage.source.depth()) > 0)
  return total
}

const uncommitted: Row = {
  name: 'c07-not-ingested',
  story: 'the ingest dies before it commits: the broker must not have let go by then',
  isInSmoke: true,
  kind: 'rabbitmq',
  async play(stage) {
    const times = ingestTimes(stage)
    for (let time = 0; time < times; time++) {
      await stage.fill(BATCHES)
      await stage.crash('ingest', { point: 'ingest not committed', nth: 1 + (time % 2) })
      await takenOver(stage)
    }
    return { statuses: { open: times * BATCHES }, duplicates: 0, told: [`${times} deaths`] }
  },
}

/** Replays all of them once; they fail again and wait in the broker. */
async function failedAgain(stage: Stage, count: number): Promise<ReplayRun> {
  const run = await stage.started({ overrides: ['failing_again'] })
  await stage.replayer.turn()
  await stage.waiting(count)
  return run
}

const refailed = onEach({
  name: 'c13-refailed',
  story: 'replays fail again, and the ingest that hears of it dies before the broker lets go',
  isInSmoke: true,
  async play(stage) {
    const count = BATCHES
    await stage.fill(count, 2)
    await stage.ingest()
    const first = await failedAgain(stage, count)
    await stage.crash('ingest', { point: 'ingest committed', nth: 1 })
    const isFirstDone = await stage.finish(first.id)
    const refails = (await stage.catalog.replays.run(first.id))?.counts.refailed
    const cycles = await cyclesOf(stage)
    const second = await stage.started({ overrides: ['failing_again'] })
    const isSecondDone = await stage.finish(second.id)
    return {
      statuses: { resolved: count },
      duplicates: 0,
      told: [`${refails} failed again`],
      broken: [
        ...notDone(isFirstDone && isSecondDone, 'the runs'),
        ...brokenIf(
          [refails !== count, 'in the wrong place', `${refails} of ${count} refailed`],
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
  story: 'replays fail again for ever, and a publisher dies in each cycle',
  kind: 'rabbitmq',
  async play(stage) {
    const count = 3
    const broken: Broken[] = []
    await stage.fill(count, Number.MAX_SAFE_INTEGER)
    await stage.ingest()
    for (let loop = 0; loop < LOOPS; loop++) {
      const { id } = await stage.started({ overrides: ['failing_again'] })
      await stage.crash('publish', { point: 'mark wanted', nth: 1 })
      broken.push(...notDone(await stage.finish(id), `cycle ${loop + 1}`))
    }
    const last = await stage.catalog.replays.plan(
      await stage.request({ overrides: ['failing_again'] }),
    )
    const stopped = last.skipped['too_many_cycles']
    return {
      statuses: { open: count },
      duplicates: LOOPS * count,
      told: [`${stopped} refused after ${LOOPS}`],
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

export const INGEST: readonly Row[] = [...committed, uncommitted, ...refailed, looping]
