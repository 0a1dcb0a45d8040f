import type { ReplayRun } from '@redrive/catalog'
import { brokenIf } from '../../evidence/evidence.ts'
import { atScale, type Result, type Scenario, type Session } from '../../harness/scenario.ts'
import type { Span } from '../../evidence/stalls.ts'
import { lasting, until } from '../../harness/wait.ts'
import { auditResolved } from './audit.ts'
import { Downstream } from './downstream.ts'
import { eventOf, type Order, ordersOf } from './orders.ts'
import { onSite, type Site, together } from './site.ts'

const COUNT = { full: 10_000, quick: 2_000 } as const
const RATE = 100
/** The product's wait for a confirmation: 3 s, or three times the slowest confirmation. */
const STALL_MS = 3_000
const STALL_FACTOR = 3
/** Plus 2 s to notice: 5 s in total when confirmations arrive in time. */
const NOTICED_MS = 2_000
/**
 * 1 % of the run may be attempted after the break; in a small run 50, the allowed number without a
 * confirmation.
 */
const ATTEMPTED_SHARE = 0.01
const ATTEMPTED_MIN = 50
/**
 * How long the downstream stays broken after the run has paused. Published messages are retried
 * without success during this time.
 */
const BROKEN_MS = { full: 10_000, quick: 3_000 } as const
/** 60 s to notice at all. If it takes longer than allowed, the report contains the time. */
const NOTICE_MS = 60_000
const RUN_MS = 240_000

/**
 * A run stops when its downstream breaks. It notices this by a health check, or only by missing
 * confirmations.
 */
export const downstreamBreaks: Scenario = {
  name: 'downstream-breaks',
  story: `two replays at ${RATE}/s into a downstream that breaks at a third, with a health check and without`,
  play: (world) =>
    together(
      onSite('break-health', 'rabbitmq', (site) => playOn(site, world, true)),
      onSite('break-stall', 'rabbitmq', (site) => playOn(site, world, false)),
    ),
}

async function playOn(site: Site, world: Session, hasHealthCheck: boolean): Promise<Result> {
  const { scale, folder } = world
  const how = hasHealthCheck ? 'with a health check' : 'without'
  const say = (text: string) => world.say(`${how}: ${text}`)
  const count = atScale(COUNT, scale)
  const orders = ordersOf(count).map(
    (order): Order => ({ ...order, family: '', failsAgain: false }),
  )
  const downstream = new Downstream({ breaksAt: Math.round(count / 3) })
  const url = await downstream.open()
  try {
    site.watch()
    await site.background(hasHealthCheck ? { healthUrl: url } : {})
    await failed(site, orders, folder)
    say(`${count} dead letters, replaying`)
    const name = hasHealthCheck ? 'with-check' : 'without-check'
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
      figures: [
        `${how}: ${count} messages`,
        ...audited.figures,
        `paused ${(pausedMs / 1_000).toFixed(1)} s after the break of at most ${(mostMs / 1_000).toFixed(1)} s (the slowest confirmation before took ${(slowestMs / 1_000).toFixed(1)} s)`,
        `${attempted} attempted after it of at most ${most}`,
        `${site.pauses.length} more pauses`,
      ],
      broken: [
        ...audited.broken,
        ...brokenIf(
          [
            pausedMs > mostMs,
            'slow recovery',
            `${how}: paused after ${pausedMs.toFixed(0)} ms of at most ${mostMs.toFixed(0)} ms`,
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

/**
 * Waits from the break to the pause. A run that pauses before the break has another reason, such as
 * a stalled machine; it is resumed.
 */
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
    because = run.pauseReason ?? ''
    if (pausedAt >= (downstream.brokenAt ?? Number.POSITIVE_INFINITY)) return true
    await site.resumeRun(run)
    goesOnAt = Date.now()
    return false
  }
  const isBroken = async () => (await isPaused()) || downstream.brokenAt !== undefined
  await until('the downstream breaks', isBroken, { withinMs: RUN_MS })
  await until('the run pauses', isPaused, { withinMs: NOTICE_MS, everyMs: 50 })
  return { from: Math.max(downstream.brokenAt ?? 0, goesOnAt), to: pausedAt, because }
}

/** Takes the latest 50 that were confirmed when the run paused, as the publisher saw them. */
const SLOWEST = `
select coalesce(max(extract(epoch from settled_at - published_at)), 0)::float8 * 1000 as ms from (
  select i.settled_at, i.published_at from redrive_catalog.replay_item i join redrive_catalog.replay_run r on r.id = i.run_id
    where r.id = $1 and i.state in ('resolved', 'failed_again') and i.settled_at > r.resumed_at and i.settled_at < r.paused_at
    order by i.settled_at desc limit 50) latest`

async function slowestOf({ pool }: Site, run: string): Promise<number> {
  const { rows } = await pool.query<{ ms: number }>(SLOWEST, [run])
  return rows[0]?.ms ?? 0
}

/** Lets all orders fail once and ingests them. Their consumer has ended. */
async function failed(site: Site, orders: readonly Order[], folder: string): Promise<void> {
  const failing = await site.consumer({ name: 'failing', folder, policy: 'plain', isFixed: false })
  await site.send(orders.map(eventOf))
  await site.ingested(orders.length)
  await failing.kill()
}
