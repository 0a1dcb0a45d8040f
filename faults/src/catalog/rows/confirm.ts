import { becomesTrue } from '../../wait.ts'
import { countEffects } from '../../effects.ts'
import { type Broken, brokenIf } from '../../drill.ts'
import type { Child } from '../child.ts'
import type { Point } from '../options.ts'
import type { Stage } from '../stage.ts'
import { ITEMS, notDone, onEach, type Row, staged, timesOf } from './row.ts'

const DIES_AFTER = 3
/** As many as may be committed when one dies, and some more. */
const PER_DEATH = 15

/** 3 s until others go on without the dead: the shortest that a busy machine keeps. */
const TAKE_OVER = '3s'
const deathsOf = ({ where, world }: Stage) =>
  world.scale !== 'full' ? 1 : where.kind === 'kafka' ? 3 : 8

/** Each death takes seconds, which are not what is patient here. */
async function finishedAtLast(stage: Stage, id: string): Promise<boolean> {
  for (let time = 0; time < 5; time++) if (await stage.finish(id)) return true
  return false
}

const unconfirmed = onEach({
  name: 'c08-unconfirmed',
  story: 'consumers die when their inbox has committed, before they confirm the replay',
  isInSmoke: true,
  consumer: { diesAfter: DIES_AFTER, takeOver: TAKE_OVER },
  async play(stage) {
    const most = deathsOf(stage)
    const count = most * PER_DEATH
    await stage.fill(count)
    await stage.ingest()
    const { id } = await stage.started()
    const finished = finishedAtLast(stage, id)
    // What handlers beside the last one had committed counts as well: it may be over before all have died.
    let deaths = 0
    let child: Child = stage.firstConsumer
    while (deaths < most && (await Promise.race([child.gone, finished])) === 'SIGKILL') {
      deaths += 1
      const dies = deaths < most ? { diesAfter: 1 + (deaths % ITEMS) } : {}
      child = await stage.consumer({ takeOver: TAKE_OVER, ...dies })
    }
    const isDone = await finished
    // At most all that the dead were handed is handed out again, and nobody has published it again.
    const handed = stage.received((consumer) => consumer !== `consumer-${deaths + 1}`)
    return {
      statuses: { resolved: count },
      duplicates: handed,
      unexplained: handed,
      told: [`${deaths} deaths`],
      broken: [
        ...notDone(isDone, 'the run'),
        ...brokenIf([deaths < most / 2, 'scenario', `only ${deaths} of ${most} died`]),
      ],
    }
  },
})

const settling = onEach({
  name: 'c08-settle',
  story: 'whoever writes down confirmations dies before and after it has',
  isInSmoke: true,
  async play(stage) {
    // A dead member of a group keeps its partitions for 10 s.
    const times = stage.where.kind === 'kafka' ? 4 : timesOf(stage)
    const broken: Broken[] = []
    const points: readonly Point[] = ['confirmations not written', 'confirmations written']
    for (const [time, ids] of (await staged(stage, times)).entries()) {
      const { id } = await stage.started({ selection: { ids } })
      await stage.replayer.turn()
      await stage.crash('settle', { point: points[time % points.length] as Point, nth: 1 })
      broken.push(...notDone(await stage.finish(id), `run ${time + 1}`))
    }
    return {
      statuses: { resolved: times * ITEMS },
      duplicates: 0,
      told: [`${times} deaths`],
      broken,
    }
  },
})

/** Takes confirmations off the broker, as a purge does, until so many are gone. */
async function loseConfirmations(stage: Stage, count: number): Promise<boolean> {
  let lost = 0
  const areGone = async () => {
    const batch = await stage.source.confirmations({ most: count })
    lost += batch.confirmations.length
    await batch.release()
    return lost >= count
  }
  return becomesTrue(areGone, { withinMs: 20_000, everyMs: 20 })
}

const purged: Row = {
  name: 'c08-purged',
  story: 'confirmations are purged: the inbox is asked, and without one nobody knows',
  kind: 'rabbitmq',
  async play(stage) {
    const { replays } = stage.catalog
    const [provable = [], others = []] = await staged(stage, 2)
    const blind = replays.replayer({ sources: [{ source: stage.source }] })
    const proofs: unknown[] = []
    const broken: Broken[] = []
    for (const [ids, replayer] of [
      [provable, stage.replayer],
      [others, blind],
    ] as const) {
      const { id } = await stage.started({ selection: { ids }, confirmWithin: '1s' })
      await replayer.turn()
      broken.push(...notDone(await loseConfirmations(stage, ITEMS), 'confirmations'))
      const isOver = async () => {
        await replayer.sweep()
        return (await replays.run(id))?.state === 'done'
      }
      broken.push(...notDone(await becomesTrue(isOver, { withinMs: 20_000 }), 'the run'))
      const items = await replays.items({ run: id })
      proofs.push(...new Set(items.map(({ state, proof }) => `${state} by ${proof ?? 'nobody'}`)))
    }
    const effects = await countEffects(stage.books, stage.where.queue)
    return {
      statuses: { resolved: ITEMS, unknown: ITEMS },
      effects,
      duplicates: 0,
      told: [proofs.join(', ')],
      broken: [
        ...broken,
        ...brokenIf([
          proofs.join(', ') !== 'resolved by inbox, unknown by nobody',
          'in the wrong place',
          proofs.join(', '),
        ]),
      ],
    }
  },
}

export const CONFIRM: readonly Row[] = [
  ...unconfirmed,
  // Too long for `quick`: each death costs 10 s.
  ...settling.map((row) => (row.kind === 'kafka' ? { ...row, isOnlyFull: true } : row)),
  purged,
]
