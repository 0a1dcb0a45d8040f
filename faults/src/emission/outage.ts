import { createEmitter, type Emitter, type Sink } from '@redrive/runtime'
import { fileStore } from '@redrive/file-store'
import { webhook } from '@redrive/sinks'
import { lasting, until } from '../wait.ts'
import { brokenIf, type Drill, type DrillResult, type DrillWorld } from '../drill.ts'
import { mostInOneSecond, percentile } from './figures.ts'
import { type Arrival, Receivers, type Tell } from './receivers.ts'

const PER_SECOND = 100
const DOWN_MS = 10_000
/** The retry rate that is configured for the sink that was down. */
const RETRIES_PER_SECOND = 100
/** A request that comes this long after its event was emitted is no first attempt. */
const FIRST_WITHIN_MS = 500
const RECOVERY_MS = 60_000
/** What a good sink may take at most for one of a hundred events: it is on the same two cores. */
const GOOD_MS = 500

const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
const sinkTo = (url: string): Sink =>
  webhook({ url, secret: SECRET, allowHttp: true, allow: ['127.0.0.1'] })

/** The one that was down comes back slow and weak. With Redrive it recovers; with plain retries it does not. */
export const outage: Drill = {
  name: 'outage',
  story: 'one of three sinks refuses everything for 10 s and comes back slow, at 100 events/s',
  async play(world) {
    const ours = await playOurs(world)
    const plain = await playPlain(world)
    return { ...ours, told: [...ours.told, plain] }
  },
}

async function playOurs({ scale, folder, say }: DrillWorld): Promise<DrillResult> {
  const lastsMs = scale === 'full' ? 60_000 : 25_000
  const receivers = new Receivers()
  const [left, right, weak] = [
    await receivers.open(),
    await receivers.open(),
    await receivers.open({ isWeak: true }),
  ]
  const store = fileStore({ directory: folder })
  const emitter = createEmitter({
    sinks: { left: sinkTo(left.url), right: sinkTo(right.url), weak: sinkTo(weak.url) },
    store,
    queue: { most: 10_000, whenFull: 'store' },
    policy: {
      timeout: '5s',
      budget: {
        ratePerSecond: RETRIES_PER_SECOND,
        floorPerSecond: RETRIES_PER_SECOND,
        burst: RETRIES_PER_SECOND,
      },
    },
    autoReplay: { schedule: '*/5 * * * * *' },
  })
  try {
    const emitted = new Set<string>()
    const sending = emitting(emitter, lastsMs, emitted)
    await lasting(3_000)
    say('a sink is down …')
    await receivers.ask({ kind: 'down', port: weak.port })
    await lasting(DOWN_MS)
    const upAt = Date.now()
    await receivers.ask({ kind: 'up', port: weak.port })
    say(`… it is back, ${(await store.stats()).count} events are in the store`)
    await sending
    const isEmpty = async () => (await store.stats()).count === 0
    await until('the store is empty', isEmpty, { withinMs: RECOVERY_MS })
    const reports = await Promise.all(
      [left, right, weak].map(({ port }) => receivers.ask({ kind: 'report', port })),
    )
    return judge(emitted, upAt, reports as [Tell, Tell, Tell])
  } finally {
    await emitter.close({ drain: '1s' })
    receivers.end()
  }
}

async function emitting(emitter: Emitter, lastsMs: number, emitted: Set<string>): Promise<void> {
  const pending: Promise<unknown>[] = []
  await paced(lastsMs, (count) => {
    const id = `event-${count}`
    emitted.add(id)
    pending.push(emitter.emit({ type: 'order.paid', id, data: { id, emittedAt: Date.now() } }))
  })
  await Promise.all(pending)
}

/** At the rate, also when a timer comes late. */
async function paced(lastsMs: number, step: (count: number) => void): Promise<void> {
  const begunAt = performance.now()
  const total = (lastsMs * PER_SECOND) / 1_000
  for (let count = 0; count < total; ) {
    const due = ((performance.now() - begunAt) * PER_SECOND) / 1_000
    while (count < Math.min(due, total)) step(count++)
    await lasting(1_000 / PER_SECOND)
  }
}

function judge(
  emitted: ReadonlySet<string>,
  upAt: number,
  [left, right, weak]: readonly [Tell, Tell, Tell],
): DrillResult {
  const missing = (arrivals: readonly Arrival[]) =>
    [...emitted].filter((id) => !new Set(arrivals.map((one) => one.id)).has(id)).length
  const lateness = ({ arrivals }: Tell) => arrivals.map(({ at, emittedAt }) => at - emittedAt)
  const lost = [left, right, weak].map(({ arrivals }) => missing(arrivals))
  const goodMs = percentile([...lateness(left), ...lateness(right)], 99)
  const retries = weak.arrivals.filter(({ at, emittedAt }) => at - emittedAt > FIRST_WITHIN_MS)
  const rate = mostInOneSecond(retries.map(({ at }) => at))
  const recoveredAt = Math.max(upAt, ...retries.map(({ at }) => at))
  const recoveryS = (recoveredAt - upAt) / 1_000
  return {
    events: emitted.size,
    told: [
      `${emitted.size} events to 3 sinks`,
      `lost ${lost.join(' ')}`,
      `the others at p99 ${goodMs.toFixed(0)} ms`,
      `at most ${rate} retries in a second of ${RETRIES_PER_SECOND}`,
      `${retries.length} arrived late`,
      `recovery ${recoveryS.toFixed(1)} s`,
      `fell ${weak.falls} times more`,
    ],
    broken: brokenIf(
      [lost.some((count) => count > 0), 'lost', `${lost.join(', ')} events never arrived`],
      [goodMs > GOOD_MS, 'too slow', `the good sinks were late: p99 ${goodMs} ms`],
      [rate > RETRIES_PER_SECOND, 'storm', `${rate} retries in one second`],
      [weak.falls > 0, 'storm', `it fell ${weak.falls} times more`],
      [recoveryS * 1_000 > RECOVERY_MS, 'slow recovery', `${recoveryS} s`],
    ),
  }
}

/**
 * The same outage with what people write first: keep events in memory while the sink refuses, and when
 * it answers again send all of them, three attempts each, 100 and 200 ms apart.
 */
async function playPlain({ scale, say }: DrillWorld): Promise<string> {
  const receivers = new Receivers()
  const weak = await receivers.open({ isWeak: true })
  let lost = 0
  const send = async (id: string) => {
    const body = JSON.stringify({ id, emittedAt: Date.now() })
    for (const delayMs of [100, 200, 400]) {
      const signal = AbortSignal.timeout(5_000)
      const answer = await fetch(weak.url, { method: 'POST', body, signal }).catch(() => undefined)
      if (answer?.ok === true) return
      await lasting(delayMs)
    }
    lost += 1
  }
  say('the same with plain retries …')
  const buffered = Array.from({ length: (PER_SECOND * DOWN_MS) / 1_000 }, (_, count) =>
    send(`event-${count}`),
  )
  const live: Promise<void>[] = []
  await paced(scale === 'full' ? 60_000 : 10_000, (count) => live.push(send(`live-${count}`)))
  await Promise.all([...buffered, ...live])
  const { requests, falls } = await receivers.ask({ kind: 'report', port: weak.port })
  receivers.end()
  const total = buffered.length + live.length
  return `with plain retries ${mostInOneSecond(requests)} requests in a second, it fell ${falls} times more and ${lost} of ${total} were lost`
}
