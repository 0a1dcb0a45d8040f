import { brokenIf } from '../../../evidence/evidence.ts'
import { atScale, type Result, type Scenario, type Session } from '../../../harness/scenario.ts'
import { scoresOf, wrongShare } from '../../../families/precision.ts'
import { becomesTrue } from '../../../harness/wait.ts'
import type { Where } from '../../options.ts'
import { pausesOf } from '../pauses.ts'
import { onSite, type Site, together } from '../site.ts'
import type { App } from './app.ts'
import { KafkaApp } from './kafka.ts'
import { RabbitMqApp } from './rabbitmq.ts'

const COUNT = { full: 2_000, quick: 200 } as const
const RATE = 200
/** The ingest uses several batches, so that it can die in the middle. */
const BATCH = 50
const DIES_AT = 2
const WRONG_MAX = 0.02
/** One in 41 messages of the second half fails again. */
const AGAIN_EVERY = 41
const RUN_MS = 180_000
const ARRIVED_MS = 10_000

/** Dead letters that no Redrive code has touched are ingested, grouped and returned unchanged. */
export const foreign: Scenario = {
  name: 'foreign',
  story:
    'dead letters of plain amqplib and of Spring Kafka; the ingest dies between commit and release',
  play: (world) =>
    together(
      onSite('foreign-rabbitmq', 'rabbitmq', (site) =>
        playOn(site, (where) => RabbitMqApp.open(where), world),
      ),
      onSite('foreign-kafka', 'kafka', (site) =>
        playOn(site, (where) => KafkaApp.open(where), world),
      ),
    ),
}

async function playOn(
  site: Site,
  openApp: (where: Where) => Promise<App>,
  world: Session,
): Promise<Result> {
  const app = await openApp(site.where)
  try {
    return await playWith(site, app, world)
  } finally {
    await app.end()
  }
}

async function playWith(site: Site, app: App, { scale, say }: Session): Promise<Result> {
  const { kind } = site.where
  const count = atScale(COUNT, scale)
  await app.fail(count)
  const { deadLetters } = app
  const dying = await site.background({ deadLetters, batch: BATCH, diesAtRelease: DIES_AT })
  const end = await dying.gone
  await site.background({ deadLetters, batch: BATCH })
  await site.ingested(count)
  const grouped = await groupsOf(site, app)
  say(`${kind}: ${count} are in the catalog in ${grouped.groups} groups, after a ${end}`)

  const again = new Set(
    [...app.labels.keys()].filter((index) => index >= count / 2 && index % AGAIN_EVERY === 0),
  )
  await app.fix(again)
  // RabbitMQ reports the time of a failure in seconds. So any of them may be among the first of the
  // canary.
  const maxFailureRatio = 1
  const how = {
    ratePerSecond: RATE,
    outcomeTimeout: '2s',
    maxFailureRatio,
  } as const
  const { id } = await site.finished(await site.replay(how), RUN_MS)
  // A failure that is ingested after the outcome timeout has the outcome "not returned" until then,
  // and the run is done.
  let second = await secondFailures(site)
  const areBack = async () => {
    second = await secondFailures(site)
    return second.length === again.size
  }
  await becomesTrue(areBack, { withinMs: ARRIVED_MS })
  const failedAgain = (await site.catalog.replays.run(id))?.counts.failed_again
  // The broker reports the same reason for every rejection. So the gates cannot distinguish them.
  const overrides = ['failed_recently'] as const
  const last = await site.finished(await site.replay({ ...how, overrides }), RUN_MS)
  await becomesTrue(() => app.handled === count, { withinMs: ARRIVED_MS })
  const statuses = await site.statuses()
  const total = Object.values(statuses).reduce((sum, one) => sum + one, 0)
  const strange = second.filter(({ reason, cycle }) => reason !== app.secondReason || cycle !== 2)
  return {
    events: count,
    figures: [
      `${kind}: ${count} messages`,
      `lost ${count - app.handled}`,
      `unexpected ${total - count}`,
      `changed or duplicated ${app.wrong.length}`,
      `${(grouped.wrong * 100).toFixed(2)} % wrongly grouped (${grouped.groups} groups)`,
      `${failedAgain} failed again and were matched to their replay`,
    ],
    broken: [
      ...brokenIf(
        [end !== 'SIGKILL', 'scenario', `${kind}: the ingest ended with ${end}`],
        [app.handled !== count, 'lost', `${kind}: ${count - app.handled} were not returned`],
        [total !== count, 'copied twice', `${kind}: the catalog has ${total} of ${count}`],
        [app.wrong.length > 0, 'changed', `${kind}: ${app.wrong[0]}`],
        [grouped.wrong > WRONG_MAX, 'unexpected', `${kind}: ${grouped.wrong} in a wrong group`],
        [
          failedAgain !== again.size || second.length !== again.size,
          'in the wrong place',
          `${kind}: ${again.size} failed again; ${failedAgain} have the state failed again and ${second.length} open`,
        ],
        [strange.length > 0, 'changed', `${kind}: stored as ${JSON.stringify(strange[0])}`],
        [
          last.counts.not_returned !== again.size || statuses['not_returned'] !== count,
          'in the wrong place',
          `${kind}: ${JSON.stringify(statuses)} instead of not_returned`,
        ],
      ),
      ...pausesOf(site),
    ],
  }
}

interface Reopened {
  readonly reason: string
  readonly cycle: number
  readonly class: string
  readonly message: string
}

async function secondFailures({ pool }: Site): Promise<readonly Reopened[]> {
  const text = `select reason, cycle, class, message from redrive_catalog.dead_letter where status = 'open'`
  return (await pool.query<Reopened>(text)).rows
}

const GROUPS = `
select substring(p.bytes from 1 for 4) as body, d.group_id
  from redrive_catalog.dead_letter d join redrive_catalog.dead_letter_payload p on p.dead_letter_id = d.id and p.part = 0`

async function groupsOf({ pool }: Site, { labels }: App) {
  const { rows } = await pool.query<{ body: Buffer; group_id: string }>(GROUPS)
  const byLabel = Map.groupBy(rows, ({ body }) => labels[body.readUInt32BE()] ?? '')
  const scores = scoresOf(
    [...byLabel.keys()],
    [...byLabel.values()].map((ofLabel) => ofLabel.map((row) => row.group_id)),
  )
  return { groups: new Set(rows.map((row) => row.group_id)).size, wrong: wrongShare(scores) }
}
