import { brokenIf, type Drill, type DrillResult, type DrillWorld } from '../../drill.ts'
import { lasting, until } from '../../wait.ts'
import { auditResolved } from './audit.ts'
import { Downstream } from './downstream.ts'
import { eventOf, type Order, ordersOf } from './orders.ts'
import { onSite, type Site, together } from './site.ts'

const COUNT = { full: 10_000, quick: 2_000 } as const
const RATE = 100
const PAUSED_MS = 5_000
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
  const count = COUNT[scale]
  const orders = ordersOf(count).map(
    (order): Order => ({ ...order, family: '', failsAgain: false }),
  )
  const downstream = new Downstream({ breaksAt: Math.round(count / 3) })
  const url = await downstream.open()
  try {
    await site.background(isAsked ? { healthUrl: url } : {})
    await failed(site, orders, folder)
    say(`${count} dead letters, replaying`)
    const name = isAsked ? 'asked' : 'unasked'
    await site.consumer({ name, folder, policy: 'usual', isFixed: true, downstreamUrl: url })
    const run = await site.replay({ ratePerSecond: RATE })
    const { replays } = site.catalog
    await until('the downstream breaks', () => downstream.brokenAt !== undefined, {
      withinMs: RUN_MS,
    })
    const isPaused = async () => (await replays.run(run.id))?.state === 'paused'
    await until('the run pauses', isPaused, { withinMs: NOTICE_MS, everyMs: 50 })
    const paused = await replays.run(run.id)
    const pausedMs = (paused?.pausedAt ?? 0) - (downstream.brokenAt ?? 0)
    say(`paused after ${pausedMs.toFixed(0)} ms: ${paused?.pausedBecause}`)
    await lasting(BROKEN_MS[scale])
    const attempted = downstream.attemptedSince
    downstream.repair()
    await replays.resume(run.id, { by: 'ada' })
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
        `paused ${(pausedMs / 1_000).toFixed(1)} s after the break`,
        `${attempted} attempted after it of at most ${most}`,
        `${site.pauses.length} more pauses after the repair`,
      ],
      broken: [
        ...audited.broken,
        ...brokenIf(
          [pausedMs > PAUSED_MS, 'slow recovery', `${how}: it paused after ${pausedMs} ms`],
          [attempted > most, 'storm', `${how}: ${attempted} were attempted after the break`],
        ),
      ],
    }
  } finally {
    downstream.close()
  }
}

/** All of them fail once and are in the catalog; their consumer is gone. */
async function failed(site: Site, orders: readonly Order[], folder: string): Promise<void> {
  const failing = await site.consumer({ name: 'failing', folder, policy: 'plain', isFixed: false })
  await site.send(orders.map(eventOf))
  await site.ingested(orders.length)
  await failing.kill()
}
