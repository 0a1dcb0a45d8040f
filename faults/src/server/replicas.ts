import { randomUUID } from 'node:crypto'
import type { Answer, Client } from '@redrive/api'
import { arrivals, auditResolved } from '../catalog/drills/audit.ts'
import { eventOf, type Order, ordersOf } from '../catalog/drills/orders.ts'
import { type Pause, wrongPauses } from '../catalog/drills/pauses.ts'
import { onSite, type Site } from '../catalog/drills/site.ts'
import { brokenIf, type Drill, type DrillResult, type DrillWorld } from '../drill.ts'
import { atScale } from '../scenario.ts'
import { lasting, until } from '../wait.ts'
import { lengthOf, paceOf } from './pace.ts'
import { type Replica, startReplica } from './replica.ts'

const COUNT = { full: 10_000, quick: 1_000 } as const
const RATE = { full: 200, quick: 25 } as const
/** 5 %: what the rate may be off while it goes on. A quick run lasts 40 s, on a machine that does other things. */
const RATE_OFF = { full: 0.05, quick: 0.25 } as const
/** The lease of the dead, and 3 s for the one that takes over. */
const GAP_MAX_MS = 8_000
const RAMP = [1, 5, 50]
/** A minute for the lease of what a dead worker had claimed, and the run itself. */
const RUN_MS = 240_000
/** How long a dead process stays dead: what an orchestrator needs to notice. */
const DEAD_MS = 2_000
const HOUR_MS = 3_600_000
/** 20 looks each second at the run, which is more than people do. */
const LOOK_MS = 50

/** Two of each that matter, every one killed in turn while a run goes out. */
export const REPLICAS: Drill = {
  name: 'replicas',
  story: 'two API replicas and two replay workers are killed in turn during a replay',
  play: (world) => onSite('server-replicas', 'rabbitmq', (site) => playOn(site, world)),
}

async function playOn(site: Site, { scale, folder, say }: DrillWorld): Promise<DrillResult> {
  const orders = ordersOf(atScale(COUNT, scale)).map(
    (order): Order => ({ ...order, failsAgain: false }),
  )
  const consumer = await site.consumer({
    name: 'consumer',
    folder,
    policy: 'plain',
    isFixed: false,
  })
  const start = (name: string, roles: string) =>
    startReplica({ name, roles, folder, config: configOf(site) })
  const other = await start('other', 'ingest,watch')
  const [one, two] = [await start('api-1', 'api'), await start('api-2', 'api')]
  // Two of a kind are never dead together.
  const victims = [await start('replay-1', 'replay'), one, await start('replay-2', 'replay'), two]
  const asking = new Asking([one.client, two.client])
  site.watch()
  try {
    await site.send(orders.map(eventOf))
    await site.ingested(orders.length)
    say(`${orders.length} are in the catalog`)
    consumer.tell('fixed')
    const run = await planned(asking, site, atScale(RATE, scale))
    const { killed, last, pauses } = await killEach(victims, asking, run, say)
    // As the consumer saw it from the end of the ramp on.
    const moments = arrivals(folder).moments.slice(RAMP.reduce((sum, one) => sum + one, 0))
    const pace = paceOf(moments, atScale(RATE, scale))
    const longestGapMs = Math.max(0, ...pace.gaps.map(lengthOf))
    const idleMs = Math.max(0, ...pace.gaps.map((gap) => lengthOf(gap) - site.stoodMs(gap)))
    const { told, broken } = await auditResolved(
      site,
      orders.map(({ id }) => id),
    )
    return {
      events: orders.length,
      told: [
        `${orders.length} messages, ${killed} processes killed`,
        ...told,
        `replayed at ${pace.perSecond.toFixed(1)}/s of ${atScale(RATE, scale)}, ${pace.overall.toFixed(1)}/s with the gaps, of which the longest was ${(longestGapMs / 1_000).toFixed(1)} s`,
        `${asking.asked} questions while they died, ${asking.turned} asked again of the other replica, ${asking.failed} without answer`,
        `${pauses.length} pauses`,
      ],
      broken: [
        // Killed between the publish and its mark: the copy is explained, its effect is not.
        ...broken.filter(({ rule }) => rule !== 'duplicates over the bound'),
        ...brokenIf(
          [killed !== victims.length, 'scenario', `${killed} were killed while it ran`],
          [
            asking.failed > 0,
            'unexpected',
            `${asking.failed} questions had no answer: ${asking.problem}`,
          ],
          [last.state !== 'done', 'not drained', `the run is ${last.state}`],
          [
            Math.abs(pace.perSecond / atScale(RATE, scale) - 1) > atScale(RATE_OFF, scale),
            'too slow',
            `${pace.perSecond.toFixed(1)}/s instead of ${atScale(RATE, scale)}/s`,
          ],
          [
            idleMs > GAP_MAX_MS,
            'slow recovery',
            `nothing for ${idleMs} ms in which the machine went on`,
          ],
        ),
        ...(await wrongPauses({ pool: site.pool, pauses }, folder)),
      ],
    }
  } finally {
    for (const one of [other, ...victims]) await one.kill()
  }
}

const configOf = ({ where }: Site) => ({
  database: { url: where.catalogUrl },
  auth: { development: { name: 'ada' } },
  approval: 'anyone',
  // More looks than people have: the limit of requests is not what is under test.
  limits: { requestsPerMinute: 1_000_000 },
  migrate: true,
  sources: { [where.queue]: { rabbitmq: { url: where.amqpUrl, queue: where.queue } } },
})

type Run = Answer<'getReplay'>

async function planned(asking: Asking, site: Site, ratePerSecond: number): Promise<Run> {
  const query = { after: Date.now() - HOUR_MS, sources: [site.where.queue] }
  const run = await asking.ask((client) =>
    client.call('planReplay', { body: { selection: { query }, ratePerSecond, ramp: RAMP } }),
  )
  const { id, hash } = run
  return asking.ask((client) => client.call('approveReplay', { params: { id }, body: { hash } }))
}

/** One at an eighth of the run each, and back after a moment; somebody looks at the run all the time. */
async function killEach(
  victims: readonly Replica[],
  asking: Asking,
  { id }: Run,
  say: (text: string) => void,
) {
  const looking = new AbortController()
  const look = () => asking.ask((client) => client.call('getReplay', { params: { id } }))
  const pauses: Pause[] = []
  const resumed = ({ pausedAt = 0, pausedBecause = '' }: Run) => {
    pauses.push({ run: id, at: pausedAt, because: pausedBecause })
    const once = { idempotencyKey: randomUUID() }
    return asking.ask((client) => client.call('resumeReplay', { params: { id } }, once))
  }
  let last = await look()
  const lookOn = async () => {
    const seen = await look()
    last = seen.state === 'paused' ? await resumed(seen) : seen
  }
  const looks = (async () => {
    while (!looking.signal.aborted) {
      // What had no answer is counted where it is asked.
      await lookOn().catch(() => undefined)
      await lasting(LOOK_MS)
    }
  })()
  const total = Object.values(last.counts).reduce((sum, one) => sum + one, 0)
  let killed = 0
  let back: [Promise<void>, Promise<void>] = [Promise.resolve(), Promise.resolve()]
  try {
    for (const [at, victim] of victims.entries()) {
      const share = ((at + 1) * total) / 8
      const isThere = () => last.counts.resolved >= share
      await until(`${Math.round(share)} are resolved`, isThere, { withinMs: RUN_MS, everyMs: 20 })
      if (last.state === 'running') killed += 1
      await victim.kill()
      say(`${victim.name} is killed at ${last.counts.resolved} of ${total}`)
      back = [back[1], lasting(DEAD_MS).then(() => victim.restart())]
      await back[0]
    }
    await back[1]
    await until('the run is over', () => last.state !== 'running', { withinMs: RUN_MS })
  } finally {
    looking.abort()
    await looks
  }
  return { killed, last, pauses }
}

/** As a balancer does it: when one replica does not answer, the other is asked. */
class Asking {
  readonly #clients: readonly Client[]
  #turn = 0
  asked = 0
  turned = 0
  failed = 0
  /** Why the last that had no answer had none. */
  problem = ''

  constructor(clients: readonly Client[]) {
    this.#clients = clients
  }

  async ask<T>(question: (client: Client) => Promise<T>): Promise<T> {
    this.asked += 1
    this.#turn += 1
    const [first, second] = [this.#turn % 2, (this.#turn + 1) % 2]
    try {
      return await question(this.#clients[first] as Client)
    } catch (error) {
      if (!(error instanceof TypeError)) throw this.#unanswered(error)
      this.turned += 1
    }
    try {
      return await question(this.#clients[second] as Client)
    } catch (error) {
      throw this.#unanswered(error)
    }
  }

  #unanswered(error: unknown): unknown {
    this.failed += 1
    this.problem = String(error)
    return error
  }
}
