// One candidate on its own queue: filled before each sample, counted after it.
import { setImmediate as nextLoopTurn } from 'node:timers/promises'
import { deadLetterQueue } from '@redrive/rabbitmq'
import { failing, type Handler, succeeding, Tally } from '../handlers.ts'
import type { Candidate } from '../harness.ts'
import { patiently } from '../patience.ts'
import { Broker, brokerUrl, ownQueue } from './broker.ts'

/** What a candidate gets to work with. */
export interface Stage {
  readonly url: string
  readonly queue: string
  readonly deadLetters: string
  readonly prefetch: number
  readonly handler: Handler
}

/** Whatever consumes: connected once, receiving only during a sample. */
export interface Contender {
  start(): Promise<void> | void
  /** Stops receiving; everything is acknowledged by then. */
  stop(): Promise<void> | void
  close(): Promise<void>
}

/** What happens to every message of a sample. */
export interface Fate {
  readonly prefetch: number
  /** Calls of the handler per message. */
  readonly attempts: number
  readonly isDeadLettered: boolean
}

export interface Entrant {
  readonly name: string
  readonly open: (stage: Stage) => Promise<Contender>
  /** Arguments of its source queue that differ from what Redrive declares. */
  readonly queueArguments?: Readonly<Record<string, unknown>>
}

/** Opens all or none: a failure halfway must not leave connections that keep the process alive. */
export async function openAll(entrants: readonly Entrant[], fate: Fate): Promise<Candidate[]> {
  const url = await brokerUrl()
  const opened: Candidate[] = []
  try {
    for (const entrant of entrants) opened.push(await onItsOwnQueue(url, entrant, fate))
    return opened
  } catch (error) {
    for (const candidate of opened) await candidate.close?.()
    throw error
  }
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
      // The garbage of filling is ours, not the candidate's. Only the young: a full collection also
      // throws away compiled code, and every sample would begin cold.
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
      // Behind the acknowledgements on the same channel: they have arrived when it has.
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
      // What was never acknowledged is back in the queue once its channel is closed.
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
