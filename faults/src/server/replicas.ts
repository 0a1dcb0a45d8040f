import { randomUUID } from 'node:crypto'
import type { Output, Client } from '@redrive/api'
import { brokenIf } from '../evidence/evidence.ts'
import { atScale, type Result, type Scenario, type Session } from '../harness/scenario.ts'
import { arrivals, auditResolved } from '../catalog/drills/audit.ts'
import { eventOf, type Order, ordersOf } from '../catalog/drills/orders.ts'
import { type Pause, wrongPauses } from '../catalog/drills/pauses.ts'
import { onSite, type Site } from '../catalog/drills/site.ts'
import { lasting, until } from '../harness/wait.ts'
import { lengthOf, paceOf } from './pace.ts'
import { type Replica, startReplica } from './replica.ts'

const COUNT = { full: 10_000, quick: 1_000 } as const
const RATE = { full: 200, quick: 25 } as const
/**
 * 5 %: allowed deviation of the rate while it is active. A quick run lasts 40 s, on a machine that
 * does other work.
 */
const RATE_OFF = { full: 0.05, quick: 0.25 } as const
/** The lease of the dead process, plus 3 s for the process that takes over. */
const GAP_MAX_MS = 8_000
const CANARY = [1, 5, 50]
/** One minute for the lease of a dead worker's claims, plus the run itself. */
const RUN_MS = 240_000
/** How long a dead process stays dead: the time that an orchestrator needs to notice. */
const DEAD_MS = 2_000
/** 20 requests per second for the run, which is more than users send. */
const LOOK_MS = 50

/** Two replicas of each important role. Each is killed in turn during a run. */
export const REPLICAS: Scenario = {
  name: 'replicas',
  story: 'two API replicas and two replay workers are killed in turn during a replay',
  play: (world) => onSite('server-replicas', 'rabbitmq', (site) => playOn(site, world)),
}

async function playOn(site: Site, { scale, folder, say }: Session): Promise<Result> {
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
  // Two of the same role are never dead together.
  const victims = [await start('replay-1', 'replay'), one, await start('replay-2', 'replay'), two]
  const asking = new Asking([one.client, two.client])
  site.watch()
  try {
    await site.send(orders.map(eventOf))
    await site.ingested(orders.length)
    say(`${orders.length} are in the catalog`)
    consumer.send('fixed')
    const run = await planned(asking, site, atScale(RATE, scale))
    const { killed, last, pauses } = await killEach(victims, asking, run, say)
    // The consumer's view, from the end of the canary on.
    const times = arrivals(folder).times.slice(CANARY.reduce((sum, one) => sum + one, 0))
    const pace = paceOf(times, atScale(RATE, scale))
    const longestGapMs = Math.max(0, ...pace.gaps.map(lengthOf))
    const idleMs = Math.max(0, ...pace.gaps.map((gap) => lengthOf(gap) - site.stoodMs(gap)))
    const { figures, broken } = await auditResolved(
      site,
      orders.map(({ id }) => id),
    )
    return {
      events: orders.length,
      figures: [
        `${orders.length} messages, ${killed} processes killed`,
        ...figures,
        `replayed at ${pace.perSecond.toFixed(1)}/s of ${atScale(RATE, scale)}, ${pace.overall.toFixed(1)}/s with the gaps, of which the longest was ${(longestGapMs / 1_000).toFixed(1)} s`,
        `${asking.requests} requests while they died, ${asking.turned} repeated at the other replica, ${asking.failed} without a response`,
        `${pauses.length} pauses`,
      ],
      broken: [
        // A kill between publish and mark explains a second copy. It does not explain a second
        // effect.
        ...broken.filter(({ rule }) => rule !== 'duplicates over the bound'),
        ...brokenIf(
          [killed !== victims.length, 'scenario', `${killed} were killed while it ran`],
          [
            asking.failed > 0,
            'unexpected',
            `${asking.failed} requests had no response: ${asking.problem}`,
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
            `nothing for ${idleMs} ms while the machine was not stalled`,
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
  // The scenario sends more requests than users do. The limit of requests is not under test.
  limits: { requestsPerMinute: 1_000_000 },
  migrate: true,
  sources: { [where.queue]: { rabbitmq: { url: where.amqpUrl, queue: where.queue } } },
})

type Run = Output<'getReplay'>

async function planned(asking: Asking, site: Site, ratePerSecond: number): Promise<Run> {
  const filter = `after:1h source:${site.where.queue}`
  const run = await asking.ask((client) =>
    client.call('planReplay', { body: { selection: { filter }, ratePerSecond, canary: CANARY } }),
  )
  const { id, hash } = run
  return asking.ask((client) => client.call('approveReplay', { params: { id }, body: { hash } }))
}

/**
 * Kills one process at each eighth of the run and restarts it shortly after. The run is requested
 * all the time.
 */
async function killEach(
  victims: readonly Replica[],
  asking: Asking,
  { id }: Run,
  say: (text: string) => void,
) {
  const looking = new AbortController()
  const look = () => asking.ask((client) => client.call('getReplay', { params: { id } }))
  const pauses: Pause[] = []
  const resumed = ({ pausedAt = 0, pauseReason = '' }: Run) => {
    pauses.push({ run: id, at: pausedAt, because: pauseReason })
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
      // Requests without a response are counted where they are sent.
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
    await until('the run has ended', () => last.state !== 'running', { withinMs: RUN_MS })
  } finally {
    looking.abort()
    await looks
  }
  return { killed, last, pauses }
}

/** Sends requests as a load balancer does: when one replica does not respond, it uses the other. */
class Asking {
  readonly #clients: readonly Client[]
  #turn = 0
  requests = 0
  turned = 0
  failed = 0
  /** Why the last request without a response failed. */
  problem = ''

  constructor(clients: readonly Client[]) {
    this.#clients = clients
  }

  async ask<T>(question: (client: Client) => Promise<T>): Promise<T> {
    this.requests += 1
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
