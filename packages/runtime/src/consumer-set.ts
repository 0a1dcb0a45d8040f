import type { Awaitable } from './awaitable.ts'
import type { Consumer, StopOptions } from './consume.ts'
import type { ConsumerHealth } from './health/consumer.ts'
import { messageOf } from './log/text.ts'

/** Starts one consumer, with `consume`. */
export type StartConsumer = () => Awaitable<Consumer>

/** The health of several consumers. It contains only what a health route may show. */
export interface ConsumerSetHealth {
  /** The worst status of all consumers. `down` also before they have started. */
  readonly status: ConsumerHealth['status']
  /** The health of each consumer, by its name. */
  readonly consumers: Readonly<Record<string, Pick<ConsumerHealth, 'status' | 'reasons'>>>
}

/** Several consumers of one process, which start and stop together. */
export interface ConsumerSet {
  /** The consumers that have started, by name. */
  readonly running: ReadonlyMap<string, Consumer>
  /** True from the end of `start` until `stop` is called. */
  readonly isRunning: boolean
  /**
   * Starts all consumers concurrently. If one does not start, the others stop again, and the result is its
   * error. Safe to call twice.
   */
  start(): Promise<void>
  /** Stops all consumers concurrently, also those that are still starting. Safe to call twice. */
  stop(options?: StopOptions): Promise<void>
  health(): ConsumerSetHealth
}

/** Creates a set of consumers. None starts before `start`. */
export function consumerSet(starts: Readonly<Record<string, StartConsumer>>): ConsumerSet {
  const names = Object.keys(starts)
  const running = new Map<string, Consumer>()
  let starting: Promise<void> | undefined
  let stopping: Promise<void> | undefined
  let isStarted = false
  const startOne = async ([name, start]: readonly [string, StartConsumer]) => {
    running.set(name, await start())
  }
  const startAll = async () => {
    // A function that throws must not prevent that the others are stopped.
    const results = await Promise.allSettled(Object.entries(starts).map(startOne))
    const errors = results.flatMap((result) =>
      result.status === 'rejected' ? [result.reason as unknown] : [],
    )
    isStarted = errors.length === 0
    if (isStarted) return
    await stopAll({})
    throw errors.length === 1 ? errors[0] : severalErrors(errors)
  }
  const stopAll = async (options: StopOptions) => {
    await Promise.all(Array.from(running.values(), (consumer) => consumer.stop(options)))
  }
  return {
    running,
    get isRunning() {
      return isStarted && stopping === undefined
    },
    start: () => (starting ??= stopping === undefined ? startAll() : Promise.reject(stopped())),
    stop: (options = {}) =>
      (stopping ??= Promise.allSettled([starting]).then(() => stopAll(options))),
    health: () => healthOf(names, running, stopping !== undefined),
  }
}

function healthOf(
  names: readonly string[],
  running: ReadonlyMap<string, Consumer>,
  isStopping: boolean,
): ConsumerSetHealth {
  const consumers = Object.fromEntries(names.map((name) => [name, stateOf(running.get(name))]))
  const found = Object.values(consumers).map(({ status }) => status)
  const isDown = isStopping || found.includes('down')
  return { status: isDown ? 'down' : found.includes('degraded') ? 'degraded' : 'up', consumers }
}

function stateOf(consumer: Consumer | undefined): Pick<ConsumerHealth, 'status' | 'reasons'> {
  if (consumer === undefined) return { status: 'down', reasons: ['It has not started.'] }
  const { status, reasons } = consumer.health()
  return { status, reasons }
}

const stopped = () => new Error('The consumers were stopped. Create a new set to start them again.')

function severalErrors(errors: readonly unknown[]): AggregateError {
  const texts = errors.map(messageOf)
  return new AggregateError(
    errors,
    `${errors.length} consumers did not start:\n${texts.join('\n')}`,
  )
}
