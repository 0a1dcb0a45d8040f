import { brokenIf } from '../../evidence/evidence.ts'
import { atScale, type Result, type Scenario, type Session } from '../../harness/scenario.ts'
import { scoresOf, wrongShare } from '../../families/precision.ts'
import type { Kind } from '../options.ts'
import { arrivals, auditResolved } from './audit.ts'
import { eventOf, FAMILIES, type Order, ordersOf } from './orders.ts'
import { wrongPauses } from './pauses.ts'
import { onSite, type Site } from './site.ts'

const COUNT = { full: 10_000, quick: 400 } as const
const RATE = { full: 200, quick: 50 } as const
/**
 * 5 %: allowed deviation of the rate in a full run. A quick run lasts seconds, so its rate means
 * little.
 */
const RATE_OFF = { full: 0.05, quick: 0.5 } as const
const WRONG_MAX = 0.02
/** The default: one, five, fifty. */
const CANARY = [1, 5, 50]
/** 15 s to plan and approve 10,000 on a machine that does everything concurrently. */
const PLAN_MS = 15_000
const RUN_MS = 180_000

const endToEnd = (kind: Kind): Scenario => ({
  name: `end-to-end-${kind}`,
  story: `messages fail in ${FAMILIES.length} ways on ${kind}; the bug is fixed, all are replayed`,
  play: (world) => onSite(`end-to-end-${kind}`, kind, (site) => playOn(site, world)),
})

export const END_TO_END: readonly Scenario[] = (['rabbitmq', 'kafka', 'postgres'] as const).map(
  endToEnd,
)

async function playOn(site: Site, { scale, folder, say }: Session): Promise<Result> {
  const orders = ordersOf(atScale(COUNT, scale))
  const again = orders.filter(({ failsAgain }) => failsAgain).length
  const consumer = await site.consumer({
    name: 'consumer',
    folder,
    policy: 'plain',
    isFixed: false,
  })
  await site.background()
  const sentAt = performance.now()
  await site.send(orders.map(eventOf))
  await site.ingested(orders.length)
  const seconds = ((performance.now() - sentAt) / 1_000).toFixed(1)
  const grouped = await groupsOf(site, orders)
  say(
    `${orders.length} failed and are in the catalog after ${seconds} s, in ${grouped.groups} groups`,
  )

  consumer.send('fixed')
  const plannedAt = performance.now()
  const run = await site.replay({ ratePerSecond: atScale(RATE, scale), canary: CANARY })
  const planMs = performance.now() - plannedAt
  const first = await site.finished(run, RUN_MS)
  const rate = rateOf(folder, CANARY)
  say(
    `${first.counts.resolved} resolved, ${first.counts.failed_again} failed again, at ${rate.toFixed(1)}/s`,
  )
  const opened = await openInCycle2(site)
  const second = await site.finished(
    await site.replay({ ratePerSecond: atScale(RATE, scale), canary: CANARY }),
    RUN_MS,
  )
  const { figures, broken } = await auditResolved(
    site,
    orders.map(({ id }) => id),
  )
  const copies = arrivals(folder).again
  return {
    events: orders.length,
    figures: [
      `${orders.length} messages`,
      ...figures,
      `duplicate deliveries ${copies}`,
      `${(grouped.wrong * 100).toFixed(2)} % wrongly grouped (${grouped.groups} groups of ${FAMILIES.length} families)`,
      `planned and approved in ${(planMs / 1_000).toFixed(1)} s`,
      `replayed at ${rate.toFixed(1)}/s of ${atScale(RATE, scale)}`,
      `${again} failed again and were replayed in cycle 2`,
      `${site.pauses.length} pauses`,
    ],
    broken: [
      ...broken,
      ...brokenIf(
        [copies > 0, 'duplicates over the bound', `${copies} replays were delivered twice`],
        [planMs > PLAN_MS, 'too slow', `planned and approved in ${planMs.toFixed(0)} ms`],
        [grouped.wrong > WRONG_MAX, 'unexpected', `${grouped.wrong} are in a wrong group`],
        [
          Math.abs(rate / atScale(RATE, scale) - 1) > atScale(RATE_OFF, scale),
          'too slow',
          `${rate.toFixed(1)}/s instead of ${atScale(RATE, scale)}/s`,
        ],
        [
          first.counts.failed_again !== again ||
            opened !== again ||
            second.counts.resolved !== again,
          'in the wrong place',
          `${again} should fail again; ${first.counts.failed_again} did, ${opened} were open in cycle 2, ${second.counts.resolved} resolved then`,
        ],
      ),
      ...(await wrongPauses(site, folder)),
    ],
  }
}

async function groupsOf({ pool }: Site, orders: readonly Order[]) {
  const { rows } = await pool.query<{ key: string; group_id: string }>(
    'select key, group_id from redrive_catalog.dead_letter',
  )
  const groups = new Map(rows.map((row) => [row.key, row.group_id]))
  const families = Map.groupBy(orders, ({ family }) => family)
  const scores = scoresOf(
    [...families.keys()],
    [...families.values()].map((ofFamily) => ofFamily.map(({ id }) => groups.get(id) ?? '')),
  )
  return { groups: new Set(groups.values()).size, wrong: wrongShare(scores) }
}

async function openInCycle2({ pool }: Site): Promise<number> {
  const text = `select count(*)::int from redrive_catalog.dead_letter where status = 'open' and cycle = 2`
  const { rows } = await pool.query<{ count: number }>(text)
  return rows[0]?.count ?? 0
}

/** Returns the rate that the consumer saw, from the end of the canary to the last message. */
function rateOf(folder: string, canary: readonly number[]): number {
  const after = arrivals(folder).times.slice(canary.reduce((sum, one) => sum + one, 0))
  const [first = 0, last = 0] = [after.at(0), after.at(-1)]
  return ((after.length - 1) * 1_000) / (last - first)
}
