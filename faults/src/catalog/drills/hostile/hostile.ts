import { brokenIf, type Drill, type DrillResult } from '../../../drill.ts'
import { until } from '../../../wait.ts'
import { pausesOf } from '../pauses.ts'
import { onSite, type Site, together } from '../site.ts'
import { hashOf, samplesFor } from './samples.ts'
import { SEND } from './send.ts'

/** 800 MB, eight times the largest body: the outbox hands it over as hex, so it is there as text, as bytes and on its way out. */
const GROWTH_MAX = 800_000_000
const INGEST_MS = 120_000
const RUN_MS = 180_000

/** Whatever a message is made of, it is kept and goes back as it came, in bounded memory. */
export const hostile: Drill = {
  name: 'hostile',
  story: 'messages that are huge, deep, no text, or have ten thousand headers, on each source',
  play: () =>
    together(
      onSite('hostile-rabbitmq', 'rabbitmq', playOn),
      onSite('hostile-kafka', 'kafka', playOn),
      onSite('hostile-postgres', 'postgres', playOn),
    ),
}

async function playOn(site: Site): Promise<DrillResult> {
  const { kind } = site.where
  const samples = samplesFor(kind)
  await site.start('./hostile/consumer.ts', site.where)
  const background = await site.background()
  const before = background.memory().now
  await SEND[kind](site, samples)
  const isThere = async () => (await keptIn(site)).all >= samples.length
  await until('all are in the catalog', isThere, { withinMs: INGEST_MS })
  const { quarantined } = await keptIn(site)
  const run = await site.finished(await site.replay({ ratePerSecond: 20 }), RUN_MS)
  const grown = background.memory().most - before
  const got = await gotBy(site)
  const changed = samples.filter(({ name, body }) => !isSame(got.get(name), hashOf(body)))
  const left = samples.length - quarantined - run.counts.resolved
  return {
    events: samples.length,
    told: [
      `${kind}: ${samples.length} messages`,
      `lost ${left}`,
      `quarantined ${quarantined}`,
      `changed ${changed.length}`,
      `memory grew by ${(grown / 1e6).toFixed(0)} MB`,
    ],
    broken: [
      ...brokenIf(
        [left > 0, 'lost', `${kind}: ${left} are not resolved: ${JSON.stringify(run.counts)}`],
        [
          changed.length > 0,
          'changed',
          changed.map(({ name }) => `${name}: ${JSON.stringify(got.get(name))}`).join('; '),
        ],
        [grown > GROWTH_MAX, 'storm', `${kind}: the memory grew by ${grown} bytes`],
      ),
      ...pausesOf(site),
    ],
  }
}

const KEPT = `
select (select count(*)::int from redrive_catalog.dead_letter) + count(*)::int as all, count(*)::int as quarantined
  from redrive_catalog.ingest_quarantine`

async function keptIn({ pool }: Site) {
  const { rows } = await pool.query<{ all: number; quarantined: number }>(KEPT)
  return rows[0] as { all: number; quarantined: number }
}

interface Got {
  readonly sample: string
  readonly cycle: number
  readonly body: string
  readonly headers: string
}

async function gotBy({ pool }: Site): Promise<ReadonlyMap<string, readonly Got[]>> {
  const { rows } = await pool.query<Got>('select * from drill_got order by cycle')
  return Map.groupBy(rows, ({ sample }) => sample)
}

/** Once in each cycle, the body as it was sent and the headers as they came the first time. */
function isSame(got: readonly Got[] = [], body: string): boolean {
  const [first, second, ...more] = got
  if (first === undefined || second === undefined || more.length > 0) return false
  const isFirst = first.cycle === 1 && second.cycle === 2
  return isFirst && first.body === body && second.body === body && first.headers === second.headers
}
