import type { ReplayRun } from '@redrive/catalog'
import { brokenIf, type Drill, type DrillResult, type DrillWorld } from '../../drill.ts'
import { atScale } from '../../scenario.ts'
import type { Span } from '../../standstill.ts'
import { lasting, until } from '../../wait.ts'
import { auditResolved } from './audit.ts'
import { Downstream } from './downstream.ts'
import { eventOf, type Order, ordersOf } from './orders.ts'
import { onSite, type Site, together } from './site.ts'

const COUNT = { full: 10_000, quick: 2_000 } as const
const RATE = 100
/** As the product waits for a proof: 3 s, or three times as long as the slowest took. */
const STALL_MS = 3_000
const STALL_FACTOR = 3
/** And 2 s to notice: 5 s in all where proofs come in time. */
const NOTICED_MS = 2_000
/** 1 % of the run may be attempted after the break; of a small run 50, which a run may have without a proof. */
const ATTEMPTED_SHARE = 0.01
const ATTEMPTED_MIN = 50
/** How long it stays broken after the run has paused: what is out is retried in vain meanwhile. */
const BROKEN_MS = { full: 10_000, quick: 3_000 } as const
/** 60 s to notice at all: what took longer than it may is told with its figure. */
const NOTICE_MS = 60_000
const RUN_MS = 240_000

/** A run stops when its downstream breaks: told by a health check, or by nothing but missing proofs. */
export const downstreamBreaks: Drill = {
  name: 'downstream-breaks',
  story: `two replays at ${RATE}/s into a downstream that breaks at a third, with a health check and without`,
  play: (world) =>
    together(
      onSite('break-health', 'rabbitmq', (site) => playOn(site, world, true)),
      onSite('break-stall', 'rabbitmq', (site) => playOn(site, world, false)),
    ),
}

async function playOn(site: Site, world: DrillWorld, isAsked: boolean): Promise<DrillResult> {
  const { scale, folder } = world
  const how = isAsked ? 'with a health check' : 'without'
  const say = (text: string) => world.say(`${how}: ${text}`)
  const count = atScale(COUNT, scale)
  const orders = ordersOf(count).map(
    (order): Order => ({ ...order, family: '', failsAgain: false }),
  )
  const downstream = new Downstream({ breaksAt: Math.round(count / 3) })
  const url = await downstream.open()
  try {
    site.watch()
    await site.background(isAsked ? { healthUrl: url } : {})
    await failed(site, orders, folder)
    say(`${count} dead letters, replaying`)
    const name = isAsked ? 'asked' : 'unasked'
    await site.consumer({ name, folder, policy: 'usual', isFixed: true, downstreamUrl: url })
    const run = await site.replay({ ratePerSecond: RATE })
    const stop = await fromBreakToPause(site, run, downstream)
    const pausedMs = stop.to - stop.from
    const slowestMs = await slowestOf(site, run.id)
    say(`paused after ${pausedMs.toFixed(0)} ms: ${stop.because}`)
    await lasting(atScale(BROKEN_MS, scale))
    const patienceMs = Math.max(STALL_MS, STALL_FACTOR * slowestMs)
    const mostMs = patienceMs + NOTICED_MS + site.stoodMs(stop)
    const attempted = downstream.attemptedSince
    downstream.repair()
    await site.catalog.replays.resume(run.id, { by: 'ada' })
    await site.finished(run, RUN_MS)
    const audited = await auditResolved(
      site,
      orders.map(({ id }) => id),
    )
    const most = Math.max(ATTEMPTED_MIN, count * ATTEMPTED_SHARE)
    return {
      events: count,
      told: [
        `${how}: ${count} messages`,
        ...audited.told,
        `paused ${(pausedMs / 1_000).toFixed(1)} s after the break of at most ${(mostMs / 1_000).toFixed(1)} s (the slowest proof before took ${(slowestMs / 1_000).toFixed(1)} s)`,
        `${attempted} attempted after it of at most ${most}`,
        `${site.pauses.length} more pauses`,
      ],
      broken: [
        ...audited.broken,
        ...brokenIf(
          [
            pausedMs > mostMs,
            'slow recovery',
            `${how}: it paused after ${pausedMs.toFixed(0)} ms of at most ${mostMs.toFixed(0)} ms`,
          ],
          [attempted > most, 'storm', `${how}: ${attempted} were attempted after the break`],
        ),
      ],
    }
  } finally {
    downstream.close()
  }
}

interface Stop extends Span {
  readonly because: string
}

/** One that pauses before the break has another reason, such as a machine that stands still: it is let go on. */
async function fromBreakToPause(
  site: Site,
  { id }: ReplayRun,
  downstream: Downstream,
): Promise<Stop> {
  let [goesOnAt, pausedAt] = [0, 0]
  let because = ''
  const isPaused = async () => {
    const run = await site.catalog.replays.run(id)
    if (run?.state !== 'paused') return false
    pausedAt = run.pausedAt ?? 0
    because = run.pausedBecause ?? ''
    if (pausedAt >= (downstream.brokenAt ?? Number.POSITIVE_INFINITY)) return true
    await site.letGoOn(run)
    goesOnAt = Date.now()
    return false
  }
  const isBroken = async () => (await isPaused()) || downstream.brokenAt !== undefined
  await until('the downstream breaks', isBroken, { withinMs: RUN_MS })
  await until('the run pauses', isPaused, { withinMs: NOTICE_MS, everyMs: 50 })
  return { from: Math.max(downstream.brokenAt ?? 0, goesOnAt), to: pausedAt, because }
}

/** Of the latest 50 that were proven when it paused, as whoever paused it saw them. */
const SLOWEST = `
select coalesce(max(extract(epoch from settled_at - published_at)), 0)::float8 * 1000 as ms from (
  select i.settled_at, i.published_at from redrive_catalog.replay_item i join redrive_catalog.replay_run r on r.id = i.run_id
    where r.id = $1 and i.state in ('resolved', 'refailed') and i.settled_at > r.resumed_at and i.settled_at < r.paused_at
    order by i.settled_at desc limit 50) latest`

async function slowestOf({ pool }: Site, run: string): Promise<number> {
  const { rows } = await pool.query<{ ms: number }>(SLOWEST, [run])
  return rows[0]?.ms ?? 0
}

/** All of them fail once and are in the catalog; their consumer is gone. */
async function failed(site: Site, orders: readonly Order[], folder: string): Promise<void> {
  const failing = await site.consumer({ name: 'failing', folder, policy: 'plain', isFixed: false })
  await site.send(orders.map(eventOf))
  await site.ingested(orders.length)
  await failing.kill()
}
