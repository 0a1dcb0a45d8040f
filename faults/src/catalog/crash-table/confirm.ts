import { brokenIf, type Violation } from '../../evidence/evidence.ts'
import { becomesTrue } from '../../harness/wait.ts'
import { countEffects } from '../../harness/effects.ts'
import type { Point } from '../options.ts'
import type { Stage } from '../stage.ts'
import { ITEMS, notDone, onEach, type Row, staged, timesOf } from './row.ts'

const DIES_AFTER = 3
/** The number of commits possible when a process dies, plus a few more. */
const PER_DEATH = 15

/**
 * 3 s until other consumers take over from a dead one. This is the shortest time that works on a
 * busy machine.
 */
const TAKE_OVER = '3s'
const deathsOf = ({ where, world }: Stage) =>
  world.scale !== 'full' ? 1 : where.kind === 'kafka' ? 3 : 8

/** Waits up to five times as long as usual, because each death takes seconds. */
async function finishedAtLast(stage: Stage, id: string): Promise<boolean> {
  for (let time = 0; time < 5; time++) if (await stage.finish(id)) return true
  return false
}

const unconfirmed = onEach({
  name: 'c08-unconfirmed',
  story: 'consumers die after their inbox commits and before they confirm the replay',
  isInSmoke: true,
  consumer: { diesAfter: DIES_AFTER, takeOver: TAKE_OVER },
  async play(stage) {
    const most = deathsOf(stage)
    const count = most * PER_DEATH
    await stage.fill(count)
    await stage.ingest()
    const { id } = await stage.started()
    const finished = finishedAtLast(stage, id)
    // Commits of the other handlers count as well. So the run may end before all consumers have
    // died.
    let deaths = 0
    let child = stage.firstConsumer
    while (deaths < most && (await Promise.race([child.gone, finished])) === 'SIGKILL') {
      deaths += 1
      const dies = deaths < most ? { diesAfter: 1 + (deaths % ITEMS) } : {}
      child = await stage.consumer({ takeOver: TAKE_OVER, ...dies })
    }
    const isDone = await finished
    // At most, all deliveries of the dead consumers are delivered again. None of them is published
    // again.
    const handed = stage.received((consumer) => consumer !== `consumer-${deaths + 1}`)
    return {
      statuses: { resolved: count },
      duplicates: handed,
      unexplained: handed,
      figures: [`${deaths} deaths`],
      broken: [
        ...notDone(isDone, 'the run'),
        ...brokenIf([deaths < most / 2, 'scenario', `only ${deaths} of ${most} died`]),
      ],
    }
  },
})

const settling = onEach({
  name: 'c08-settle',
  story: 'the process that stores confirmations dies before and after the write',
  isInSmoke: true,
  async play(stage) {
    // A dead member of a group keeps its partitions for 10 s.
    const times = stage.where.kind === 'kafka' ? 4 : timesOf(stage)
    const broken: Violation[] = []
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
      figures: [`${times} deaths`],
      broken,
    }
  },
})

/** Deletes `count` confirmations from the broker, as a purge does. */
async function loseConfirmations(stage: Stage, count: number): Promise<boolean> {
  let lost = 0
  const areGone = async () => {
    const batch = await stage.source.confirmations({ limit: count })
    lost += batch.confirmations.length
    await batch.release()
    return lost >= count
  }
  return becomesTrue(areGone, { withinMs: 20_000, everyMs: 20 })
}

const purged: Row = {
  name: 'c08-purged',
  story:
    'confirmations are purged: the inbox confirms the replay; without an inbox the outcome is unknown',
  kind: 'rabbitmq',
  async play(stage) {
    const { replays } = stage.catalog
    const [provable = [], others = []] = await staged(stage, 2)
    const blind = replays.replayer({ sources: [{ source: stage.source }] })
    const proofs: unknown[] = []
    const broken: Violation[] = []
    for (const [ids, replayer] of [
      [provable, stage.replayer],
      [others, blind],
    ] as const) {
      const { id } = await stage.started({ selection: { ids }, outcomeTimeout: '1s' })
      await replayer.turn()
      broken.push(...notDone(await loseConfirmations(stage, ITEMS), 'confirmations'))
      const isOver = async () => {
        await replayer.sweep()
        return (await replays.run(id))?.state === 'done'
      }
      broken.push(...notDone(await becomesTrue(isOver, { withinMs: 20_000 }), 'the run'))
      const items = await replays.items({ run: id })
      proofs.push(
        ...new Set(items.map(({ state, confirmedBy }) => `${state} by ${confirmedBy ?? 'none'}`)),
      )
    }
    const effects = await countEffects(stage.books, stage.where.queue)
    return {
      statuses: { resolved: ITEMS, unknown: ITEMS },
      effects,
      duplicates: 0,
      figures: [proofs.join(', ')],
      broken: [
        ...broken,
        ...brokenIf([
          proofs.join(', ') !== 'resolved by inbox, unknown by none',
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
