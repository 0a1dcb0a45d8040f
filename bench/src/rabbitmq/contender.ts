// One candidate on a separate queue: filled before each sample, counted after it.
import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { deadLetterQueue } from '@redrive/rabbitmq'
import { failing, type Handler, succeeding, Tally } from '../handlers.ts'
import type { Candidate } from '../harness.ts'
import { openEach } from '../opening.ts'
import { patiently } from '../patience.ts'
import { Broker, brokerUrl, ownQueue } from './broker.ts'

/** Everything that a candidate needs. */
export interface Stage {
  readonly url: string
  readonly queue: string
  readonly deadLetters: string
  readonly prefetch: number
  readonly handler: Handler
}

/** A program that consumes: connected once, receiving only during a sample. */
export interface Contender {
  start(): Promise<void> | void
  /** Stops receiving; everything is acknowledged by then. */
  stop(): Promise<void> | void
  close(): Promise<void>
}

/** The outcome of every message of a sample. */
export interface Fate {
  readonly prefetch: number
  /** Number of handler calls per message. */
  readonly attempts: number
  readonly isDeadLettered: boolean
}

export interface Entrant {
  readonly name: string
  readonly open: (stage: Stage) => Promise<Contender>
  /** Arguments of its source queue that differ from Redrive's. */
  readonly queueArguments?: Readonly<Record<string, unknown>>
}

/** Opens all candidates, or none if one fails. */
export async function openAll(entrants: readonly Entrant[], fate: Fate): Promise<Candidate[]> {
  const url = await brokerUrl()
  return openEach(entrants, (entrant) => onItsOwnQueue(url, entrant, fate))
}

async function onItsOwnQueue(
  url: string,
  { name, open, queueArguments }: Entrant,
  { prefetch, attempts, isDeadLettered }: Fate,
): Promise<Candidate> {
  const broker = await Broker.open(url)
  const queue = ownQueue()
  const deadLetters = deadLetterQueue(queue)
  const tally = new Tally()
  const handler = isDeadLettered ? failing(tally) : succeeding(tally)
  await broker.declare(queue, queueArguments)
  const contender = await open({ url, queue, deadLetters, prefetch, handler })
  await contender.stop()
  const expected = (count: number) => ({
    calls: count * attempts,
    dead: isDeadLettered ? count : 0,
  })

  return {
    name,
    async prepare(count) {
      await broker.purge(deadLetters)
      await broker.until(queue, ({ consumers }) => consumers === 0)
      await broker.fill(queue, count)
      // Collects the garbage from filling, which is not the candidate's. Only the young generation:
      // a full collection also removes compiled code, and every sample would start cold.
      await nextLoopTurn()
      globalThis.gc?.({ type: 'minor' })
    },
    async run(count) {
      const { calls, dead } = expected(count)
      const handled = tally.expect(calls)
      await contender.start()
      await patiently(handled, () => `${tally.calls} of ${calls} calls`)
      if (dead > 0) await broker.until(deadLetters, ({ ready }) => ready >= dead)
      await contender.stop()
      // The cancel follows the acknowledgements on the same channel, so they have arrived when it
      // has.
      await broker.until(queue, ({ consumers }) => consumers === 0)
    },
    async verify(count) {
      const { calls, dead } = expected(count)
      if (tally.calls !== calls) throw new Error(`${tally.calls} calls instead of ${calls}`)
      await expectReady(broker, deadLetters, dead)
      await expectReady(broker, queue, 0)
    },
    async close() {
      await contender.close()
      // Unacknowledged messages return to the queue when the channel is closed.
      await broker.until(queue, ({ consumers }) => consumers === 0)
      const { ready } = await broker.look(queue)
      await broker.delete(queue)
      await broker.close()
      if (ready !== 0) throw new Error(`"${name}" left ${ready} messages unacknowledged`)
    },
  }
}

async function expectReady(broker: Broker, queue: string, count: number): Promise<void> {
  const { ready } = await broker.look(queue)
  if (ready !== count) throw new Error(`${ready} messages in ${queue} instead of ${count}`)
}
