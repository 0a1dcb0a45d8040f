import { setImmediate as nextTurn } from 'node:timers/promises'
import { join } from 'node:path'
import { createEmitter, nonFailing, type Sink } from '@redrive/runtime'
import { fileStore } from '@redrive/file-store'
import { recordingSink } from '@redrive/testing'
import { brokenIf, type Violation } from '../evidence/evidence.ts'
import { atScale, type ByScale, type Scenario } from '../harness/scenario.ts'
import { lasting } from '../harness/wait.ts'
import { down } from './down.ts'
import { storedIds } from './stored.ts'

const EVENTS: ByScale<number> = { smoke: 30_000, quick: 100_000, full: 100_000 }
const QUEUE = 1_000
const BATCH = 100
/** 50 ms for each batch: the burst ends long before the queue has room again. */
const SLOW_MS = 50

const SINKS: Readonly<
  Record<string, () => Sink & { readonly events?: readonly { id: string }[] }>
> = {
  healthy: () => recordingSink({ batch: BATCH }),
  slow: () => recordingSink({ batch: BATCH, onSend: () => lasting(SLOW_MS) }),
  down: () => down,
}

/** A burst that is larger than the queue of its sink is delivered or stored, whatever the state of the sink. */
export const bursts: Scenario = {
  name: 'bursts',
  story: `100,000 events in one tick, to a queue of ${QUEUE}; the sink is healthy, slow or down`,
  isInSmoke: true,
  async play({ scale, folder, say }) {
    const count = atScale(EVENTS, scale)
    const results: Burst[] = []
    for (const [state, make] of Object.entries(SINKS)) {
      say(`the sink is ${state}`)
      results.push(await burst(state, make(), join(folder, state), count))
    }
    return {
      events: count * results.length,
      figures: results.map(
        ({ state, delivered, stored, ms }) =>
          `${state}: ${count} emitted, ${delivered} delivered, ${stored} stored, ${count - delivered - stored} lost in ${(ms / 1_000).toFixed(1)} s`,
      ),
      broken: results.flatMap((result) => judge(result, count)),
    }
  },
}

interface Burst {
  readonly state: string
  readonly delivered: number
  readonly stored: number
  /** Events that are delivered and stored. */
  readonly both: number
  /** `delivered`, `stored` and `lost` of the emitter's statistics. */
  readonly counted: readonly [number, number, number]
  readonly ms: number
}

async function burst(
  state: string,
  sink: Sink & { readonly events?: readonly { id: string }[] },
  directory: string,
  count: number,
): Promise<Burst> {
  const emitter = createEmitter({
    sinks: { sink },
    store: fileStore({ directory }),
    queue: { maxEvents: QUEUE, onFull: 'store' },
  })
  const begunAt = performance.now()
  const emitted = nonFailing(() =>
    Array.from({ length: count }, (_, index) =>
      emitter.emit({ type: 'order.paid', id: `event-${index}`, data: { index } }),
    ),
  )
  await Promise.all(emitted)
  await nextTurn()
  await emitter.close()
  const ms = performance.now() - begunAt
  const delivered = new Set((sink.events ?? []).map(({ id }) => id))
  const stored = new Set(await storedIds(directory))
  const counts = emitter.stats().sinks['sink']
  return {
    state,
    delivered: delivered.size,
    stored: stored.size,
    both: [...delivered].filter((id) => stored.has(id)).length,
    counted: [counts?.delivered ?? 0, counts?.stored ?? 0, counts?.lost ?? 0],
    ms,
  }
}

function judge({ state, delivered, stored, both, counted }: Burst, count: number): Violation[] {
  const lost = count - delivered - stored + both
  return [
    ...brokenIf(
      [lost !== 0, 'lost', `${state}: ${lost} of ${count} are neither delivered nor stored`],
      [both > 0, 'unexpected', `${state}: ${both} events are delivered and stored`],
      [
        counted.join() !== [delivered, stored, 0].join(),
        'unexpected',
        `${state}: the statistics count ${counted.join(', ')} delivered, stored and lost`,
      ],
    ),
  ]
}
