import { createEmitter, type Emitter, type Sink } from '@redrive/runtime'
import { fileStore } from '@redrive/file-store'
import { webhook } from '@redrive/sinks'
import { brokenIf } from '../evidence/evidence.ts'
import {
  atScale,
  type ByScale,
  type Result,
  type Scenario,
  type Session,
} from '../harness/scenario.ts'
import { judgedOf, type Late } from '../evidence/lateness.ts'
import { isDisturbed, type Span, watchStandstills } from '../evidence/stalls.ts'
import { lasting, until } from '../harness/wait.ts'
import { mostInOneSecond, percentile } from './figures.ts'
import { type Arrival, Receivers, type Tell } from './receivers.ts'
import { notingResends, type Resend } from './resends.ts'

const PER_SECOND = 100
const DOWN_MS: ByScale<number> = { smoke: 3_000, quick: 10_000, full: 10_000 }
const LASTS_MS: ByScale<number> = { smoke: 12_000, quick: 25_000, full: 60_000 }
const PLAIN_MS: ByScale<number> = { quick: 10_000, full: 60_000 }
/** The retry rate that is configured for the sink that was down. */
const RETRIES_PER_SECOND = 100
const RECOVERY_MS = 60_000
/** Maximum p99 of a healthy sink. It runs on the same two cores. */
const GOOD_MS = 500

const SECRET = `whsec_${Buffer.alloc(24, 7).toString('base64')}`
const sinkTo = (url: string): Sink =>
  webhook({ url, secret: SECRET, allowHttp: true, allow: ['127.0.0.1'] })

/**
 * One sink comes back slow and weak after an outage. With Redrive it recovers; with plain retries
 * it does not.
 */
export const outage: Scenario = {
  name: 'outage',
  story: 'one of three sinks rejects everything for seconds and comes back slow, at 100 events/s',
  isInSmoke: true,
  async play(world) {
    const ours = await playOurs(world)
    // This part is for comparison only. It proves nothing about Redrive.
    if (world.scale === 'smoke') return ours
    const plain = await playPlain(world)
    return { ...ours, figures: [...ours.figures, plain] }
  },
}

async function playOurs({ scale, folder, say }: Session): Promise<Result> {
  const lastsMs = atScale(LASTS_MS, scale)
  const receivers = new Receivers()
  const [left, right, weak] = [
    await receivers.open(),
    await receivers.open(),
    await receivers.open({ isWeak: true }),
  ]
  const store = fileStore({ directory: folder })
  const weakSink = notingResends('weak', sinkTo(weak.url))
  const standstills: Span[] = []
  const endWatch = watchStandstills((span) => void standstills.push(span))
  const emitter = createEmitter({
    sinks: { left: sinkTo(left.url), right: sinkTo(right.url), weak: weakSink },
    store,
    queue: { maxEvents: 10_000, onFull: 'store' },
    policy: {
      timeout: '5s',
      retryBudget: {
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
    await lasting(atScale(DOWN_MS, scale))
    const upAt = Date.now()
    await receivers.ask({ kind: 'up', port: weak.port })
    say(`… it is back, ${(await store.stats()).count} events are in the store`)
    await sending
    const isEmpty = async () => (await store.stats()).count === 0
    await until('the store is empty', isEmpty, { withinMs: RECOVERY_MS })
    const reports = await Promise.all(
      [left, right, weak].map(({ port }) => receivers.ask({ kind: 'report', port })),
    )
    const { resends } = weakSink
    return judge({ emitted, upAt, resends, standstills, reports: reports as [Tell, Tell, Tell] })
  } finally {
    endWatch()
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

/** Calls `step` at the configured rate, even when a timer fires late. */
async function paced(lastsMs: number, step: (count: number) => void): Promise<void> {
  const begunAt = performance.now()
  const total = (lastsMs * PER_SECOND) / 1_000
  for (let count = 0; count < total; ) {
    const due = ((performance.now() - begunAt) * PER_SECOND) / 1_000
    while (count < Math.min(due, total)) step(count++)
    await lasting(1_000 / PER_SECOND)
  }
}

interface Outage {
  readonly emitted: ReadonlySet<string>
  readonly upAt: number
  /** Repeated sends to the weak sink. */
  readonly resends: readonly Resend[]
  /** Stalls of the emitting process. */
  readonly standstills: readonly Span[]
  readonly reports: readonly [left: Tell, right: Tell, weak: Tell]
}

function judge({ emitted, upAt, resends, standstills, reports }: Outage): Result {
  const [left, right, weak] = reports
  const missing = (arrivals: readonly Arrival[]) =>
    [...emitted].filter((id) => !new Set(arrivals.map((one) => one.id)).has(id)).length
  const lost = reports.map(({ arrivals }) => missing(arrivals))
  const good = [left, right].flatMap((one) => latenessOf(one, standstills))
  const judged = judgedOf(good, GOOD_MS)
  const goodMs = percentile(
    judged.map(({ ms }) => ms),
    99,
  )
  const rate = mostInOneSecond(resends.map(({ at }) => at))
  const isResent = new Set(resends.map(({ id }) => id))
  const late = weak.arrivals.filter(({ id }) => isResent.has(id))
  const recoveredAt = Math.max(upAt, ...late.map(({ at }) => at))
  const recoveryS = (recoveredAt - upAt) / 1_000
  return {
    events: emitted.size,
    figures: [
      `${emitted.size} events to 3 sinks`,
      `lost ${lost.join(' ')}`,
      `the others at p99 ${goodMs.toFixed(0)} ms`,
      `at most ${rate} retries in a second of ${RETRIES_PER_SECOND}`,
      `${late.length} arrived late`,
      `recovery ${recoveryS.toFixed(1)} s`,
      `fell ${weak.falls} times more`,
    ],
    broken: brokenIf(
      [lost.some((count) => count > 0), 'lost', `${lost.join(', ')} events never arrived`],
      [goodMs > GOOD_MS, 'too slow', `the healthy sinks were late: p99 ${goodMs} ms`],
      [judged.length * 2 < good.length, 'too slow', 'the machine was stalled for most of the time'],
      [rate > RETRIES_PER_SECOND, 'storm', `${rate} retries in one second`],
      [weak.falls > 0, 'storm', `the sink fell ${weak.falls} times more`],
      [recoveryS * 1_000 > RECOVERY_MS, 'slow recovery', `${recoveryS} s`],
    ),
  }
}

function latenessOf({ arrivals, standstills }: Tell, ofEmitter: readonly Span[]): readonly Late[] {
  const all = [...standstills, ...ofEmitter]
  return arrivals.map(({ at, emittedAt }) => ({
    ms: at - emittedAt,
    isDisturbed: isDisturbed({ from: emittedAt, to: at }, all),
  }))
}

/**
 * Plays the same outage with a typical first solution. It keeps events in memory while the sink
 * rejects them. When the sink responds again, it sends all of them, with three attempts, 100 and
 * 200 ms apart.
 */
async function playPlain({ scale, say }: Session): Promise<string> {
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
  const buffered = Array.from(
    { length: (PER_SECOND * atScale(DOWN_MS, scale)) / 1_000 },
    (_, count) => send(`event-${count}`),
  )
  const live: Promise<void>[] = []
  await paced(atScale(PLAIN_MS, scale), (count) => live.push(send(`live-${count}`)))
  await Promise.all([...buffered, ...live])
  const { requests, falls } = await receivers.ask({ kind: 'report', port: weak.port })
  receivers.end()
  const total = buffered.length + live.length
  return `with plain retries ${mostInOneSecond(requests)} requests in a second, the sink fell ${falls} times more and ${lost} of ${total} were lost`
}
