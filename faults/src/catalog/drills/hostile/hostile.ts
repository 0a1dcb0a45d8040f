import { brokenIf } from '../../../evidence/evidence.ts'
import type { Result, Scenario } from '../../../harness/scenario.ts'
import { memoryOf } from '../../../harness/process.ts'
import { until } from '../../../harness/wait.ts'
import { pausesOf } from '../pauses.ts'
import { onSite, type Site, together } from '../site.ts'
import { hashOf, samplesFor } from './samples.ts'
import { SEND } from './send.ts'

/**
 * 800 MB, eight times the largest body. The outbox transfers it as hex, so memory holds text, bytes
 * and the outgoing copy.
 */
const GROWTH_MAX = 800_000_000
const INGEST_MS = 120_000
const RUN_MS = 180_000

/** Any message is stored and returned unchanged, in bounded memory. */
export const hostile: Scenario = {
  name: 'hostile',
  story:
    'messages that are huge, deeply nested, not text, or have ten thousand headers, on each source',
  play: () =>
    together(
      onSite('hostile-rabbitmq', 'rabbitmq', playOn),
      onSite('hostile-kafka', 'kafka', playOn),
      onSite('hostile-postgres', 'postgres', playOn),
    ),
}

async function playOn(site: Site): Promise<Result> {
  const { kind } = site.where
  const samples = samplesFor(kind)
  await site.start('./hostile/consumer.ts', site.where)
  const background = await site.background()
  const before = memoryOf(background).now
  await SEND[kind](site, samples)
  const isThere = async () => (await keptIn(site)).all >= samples.length
  await until('all are in the catalog', isThere, { withinMs: INGEST_MS })
  const { setAside } = await keptIn(site)
  const run = await site.finished(await site.replay({ ratePerSecond: 20 }), RUN_MS)
  const grown = memoryOf(background).most - before
  const got = await gotBy(site)
  const changed = samples.filter(({ name, body }) => !isSame(got.get(name), hashOf(body)))
  const left = samples.length - setAside - run.counts.resolved
  return {
    events: samples.length,
    figures: [
      `${kind}: ${samples.length} messages`,
      `lost ${left}`,
      `set aside ${setAside}`,
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
select (select count(*)::int from redrive_catalog.dead_letter) + count(*)::int as all, count(*)::int as "setAside"
  from redrive_catalog.set_aside`

async function keptIn({ pool }: Site) {
  const { rows } = await pool.query<{ all: number; setAside: number }>(KEPT)
  return rows[0] as { all: number; setAside: number }
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

/** Checks for one delivery in each cycle, with the sent body and the headers of the first delivery. */
function isSame(got: readonly Got[] = [], body: string): boolean {
  const [first, second, ...more] = got
  if (first === undefined || second === undefined || more.length > 0) return false
  const isFirst = first.cycle === 1 && second.cycle === 2
  return isFirst && first.body === body && second.body === body && first.headers === second.headers
}
