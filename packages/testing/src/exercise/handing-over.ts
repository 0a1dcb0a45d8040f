import assert from 'node:assert/strict'
import { isRedriveError } from '@redrive/core'
import type { AttemptContext, Receiver, Transport } from '@redrive/runtime'
import { numbered, unreachable } from './samples.ts'
import type { Scenario } from './scenario.ts'
import type { ScenarioContext } from './scenario-context.ts'
import { wrapTransport } from './wrap-transport.ts'

/** 20 s: longer than a broker needs to find the next owner. */
const HANDLER_MS = 20_000
/** 100 ms: the signal fires in the same turn, and a busy machine needs some time for it. */
const SIGNAL_MS = 100
/** 15 s: the retry of the failed message is due after the transport noticed the loss, and before the end. */
const RETRY_MS = 15_000
const IN_LANE = 3

/** The record of the handlers of both consumers. */
class Runs {
  readonly #now: () => number
  readonly #alive = new Set<string>()
  readonly #slow: (() => void)[] = []
  readonly ids: string[] = []
  readonly abortedAt = new Map<string, number>()
  readonly problems: string[] = []
  /** From now on, handlers succeed immediately. */
  isTaken = false

  constructor(now: () => number) {
    this.#now = now
  }

  handlerOf(owner: string, failing: string) {
    return async ({ id }: { readonly id: string }, { signal }: AttemptContext) => {
      this.ids.push(id)
      const run = `${owner} ${id}`
      if (this.#alive.has(run)) this.problems.push(`two runs of ${id} in one process`)
      this.#alive.add(run)
      try {
        if (this.isTaken) return
        if (id === failing) throw unreachable()
        await this.#untilReleased(id, signal)
      } finally {
        this.#alive.delete(run)
      }
    }
  }

  /** Ignores the signal, as a handler does that waits for something else. */
  async #untilReleased(id: string, signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.abortedAt.set(id, this.#now()))
    await new Promise<void>((resolve) => this.#slow.push(resolve))
    if (!isRedriveError(signal.reason, 'DELIVERY_LOST'))
      this.problems.push(`the reason of the signal is ${String(signal.reason)}`)
  }

  get slow(): number {
    return this.#slow.length
  }

  release(): void {
    for (const end of this.#slow) end()
  }
}

/**
 * The broker takes the messages of a consumer back and delivers them to another one. One handler still runs,
 * and one message has failed and waits for its retry. Neither leads to another run of the lost delivery.
 */
async function handOver(context: ScenarioContext): Promise<void> {
  const world = context.having('stealOwnership')
  const { ordering } = context.capabilities
  const now = () => context.clock.now()
  const failing = await world.send(numbered(0, 'failing'))
  const ids: string[] = []
  for (let number = 1; number <= IN_LANE; number++) {
    ids.push(await world.send(numbered(number, 'lane')))
  }
  const runs = new Runs(now)
  const options = {
    order: ordering,
    timeout: '60s',
    // A message that returns to its first consumer waits for the earlier run.
    grace: '30s',
    retry: { ...context.retry('5m'), backoff: { kind: 'fixed', delay: RETRY_MS } },
  } as const

  const first = context.transport()
  const losses = noteLosses(first, now)
  await context.consume(runs.handlerOf('first', failing), options, losses.transport)
  await context.until('the first consumer runs the messages', () => {
    return runs.slow > 0 && runs.ids.includes(failing)
  })
  // Without lanes, the other messages run now, too.
  await context.quiet()
  runs.isTaken = true
  const held = runs.slow
  const before = runs.ids.length
  await context.consume(runs.handlerOf('second', failing), options)
  await context.within('the broker takes the messages back', world.stealOwnership(first))
  await context.until('the signals of the handlers of the first consumer fire', () => {
    return runs.abortedAt.size === held
  })
  for (const [id, abortedAt] of runs.abortedAt) {
    const lateMs = abortedAt - (losses.at.get(id) ?? 0)
    assert.ok(lateMs <= SIGNAL_MS, `the signal fires ${lateMs} ms after lost(), not ${SIGNAL_MS}`)
  }
  await context.pass(HANDLER_MS)
  runs.release()
  await context.places({ backlog: 0, deadLetters: 0 })
  await context.quiet()

  const next = runs.ids.slice(before)
  const what = 'runs after the broker took the messages back: each message once'
  assert.deepEqual(next.toSorted(), [failing, ...ids].toSorted(), what)
  if (ordering === 'lane') {
    const inLane = next.filter((id) => id !== failing)
    assert.deepEqual(inLane, ids, 'the order of the lane at its next owner')
  }
  assert.deepEqual(runs.problems, [])
}

/** Returns the same transport, and when it reported the loss of each message first. */
function noteLosses(transport: Transport, now: () => number) {
  const at = new Map<string, number>()
  const receive = (receiver: Receiver) =>
    transport.receive({
      deliver: (delivery) => receiver.deliver(delivery),
      lost: (delivery) => {
        if (!at.has(delivery.id)) at.set(delivery.id, now())
        receiver.lost(delivery)
      },
    })
  return { transport: wrapTransport(transport, { receive }), at }
}

export const HANDING_OVER: readonly Scenario[] = [
  {
    name: 'the next owner runs a message once and in its order, also while the last owner runs it for 20 s',
    play: handOver,
    needs: 'stealOwnership',
  },
]
