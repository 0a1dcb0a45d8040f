import { type Delivery, type Duration, type Policy, RedriveError } from '@redrive/core'
import type { AttemptContext } from './attempt.ts'
import { instrumented } from './instrument.ts'
import { composeCall } from './invoke.ts'
import { readDrain } from './checks.ts'
import { missingCapabilities } from './capabilities.ts'
import { type ConsumeOptions, readConsumeOptions } from './consume-options.ts'
import type { Clock } from './clock.ts'
import type { Dependency } from './dependency.ts'
import { type ConsumerStats, statsOf } from './consumer-stats.ts'
import { publish } from './events.ts'
import { type ConsumerHealth, healthOf } from './health/consumer.ts'
import { logConsumer } from './log/consumer-log.ts'
import { Loop } from './loop.ts'
import type { Message } from './message.ts'
import type { Awaitable } from './awaitable.ts'
import type { Transport } from './ports/transport.ts'
import { addConsumer } from './process-parts.ts'
import { Probes } from './probes.ts'
import { releaseAll, shutDown } from './shutdown.ts'
import { followSource, type SourceState } from './source-state.ts'
import { useTransport } from './transport-use.ts'

/** Handles one message. Return to acknowledge; throw to let Redrive decide. */
export type Handler<Body = unknown, Tx = undefined> = (
  message: Message<Body>,
  context: AttemptContext<Tx>,
) => Awaitable<unknown>

export interface StopOptions {
  /** Maximum time to stop: four fifths for handlers to finish, then their signal fires. Default '25s'. */
  readonly drain?: Duration
}

export interface Consumer {
  readonly source: string
  /** The resolved policy. */
  readonly policy: Policy
  readonly dependency: Dependency
  stats(): ConsumerStats
  /** Returns whether the consumer works, and why not. For the health check of the process. */
  health(): ConsumerHealth
  /** Stops new deliveries until `resume`. Running handlers continue. */
  pause(): void
  resume(): void
  /** Finishes running handlers, returns the other deliveries and closes the transport. Safe to call twice. */
  stop(options?: StopOptions): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Shorter than the 30 s that orchestrators allow between the signal and the kill. */
const DRAIN_MS = 25_000

/** Runs the handler for every message of the transport, until `stop`. */
export async function consume<Body = unknown, Tx = undefined, D extends Delivery = Delivery>(
  transport: Transport<D>,
  handler: Handler<Body, Tx>,
  options: ConsumeOptions<Body, Tx> = {},
): Promise<Consumer> {
  const checked = readConsumeOptions({ transport, handler, options })
  const { policy, dependency, name, logger, clock, random, signature } = checked
  refuseMissing(policy, transport)
  const closed = useTransport(transport)
  const leave = dependency.join({
    source: transport.source,
    breaker: policy.breaker,
    outage: policy.outage,
  })
  const probes = new Probes({ dependency, clock, graceMs: policy.graceMs })
  const { source } = transport
  const endLog = logConsumer({
    source,
    clock,
    logger,
    policy,
    handler: name,
    dependency: dependency.name,
  })
  const following = followSource(transport)
  const release = () => {
    endLog()
    following.end()
    probes.endAll()
    leave()
    closed()
  }
  const composed = composeCall({
    ...checked,
    handler: handler as (message: Message, context: AttemptContext<unknown>) => Awaitable<unknown>,
    consumer: name,
    timeoutMs: policy.timeoutMs,
  })
  const { system = 'redrive' } = transport
  const call = instrumented(composed, { handler: name, dependency: dependency.name, system })
  const loop = new Loop({
    transport,
    call: policy.breaker === undefined ? call : probes.counting(call),
    policy,
    handlerName: name,
    dependency,
    clock,
    random,
    signature,
  })
  try {
    await transport.open({
      deadLetterRetentionMs: policy.deadLetter.retentionMs,
      ...crashLimitOf(policy),
      // Without a name it is the source, which a dead letter contains already.
      ...(name === transport.source ? {} : { handler: name }),
    })
    await loop.start()
  } catch (error) {
    releaseAll(loop)
    await closeUnused(transport, clock)
    release()
    throw error
  }
  const consumer = consumerOf(loop, following.state, () => {
    release()
    remove()
  })
  const remove = addConsumer({ handler: name, consumer })
  return consumer
}

/** Closes the transport of a consumer that did not start. Its error is logged: the caller gets the reason of the start. */
async function closeUnused<D extends Delivery>(transport: Transport<D>, clock: Clock) {
  try {
    await transport.close({ drainMs: 0 })
  } catch (error) {
    const { source } = transport
    publish({ type: 'user_code_failed', at: clock.now(), source, where: 'close', error })
  }
}

const crashLimitOf = ({ poison }: Policy) =>
  poison === undefined ? {} : { crashLimit: poison.suspectDeliveries + poison.trials }

function consumerOf<D extends Delivery>(
  loop: Loop<D>,
  source: SourceState,
  release: () => void,
): Consumer {
  const { transport, policy, dependency } = loop.deps
  let stopped: Promise<void> | undefined
  const stop = async (options?: StopOptions) => {
    const drainMs = readDrain('stop()', options, DRAIN_MS)
    stopped ??= shutDown(loop, drainMs).finally(release)
    return stopped
  }
  return {
    source: transport.source,
    policy,
    dependency,
    stats: () => statsOf(loop),
    health: () => healthOf(loop, source),
    pause: () => loop.capacity.pause(),
    resume: () => loop.capacity.resume(),
    stop,
    [Symbol.asyncDispose]: () => stop(),
  }
}

function refuseMissing(policy: Policy, { source, capabilities }: Transport): void {
  const problems = missingCapabilities(policy, capabilities)
  if (problems.length === 0) return
  throw new RedriveError(
    'CAPABILITY_MISSING',
    `The transport of "${source}" cannot run this policy:\n- ${problems.join('\n- ')}`,
    {
      problems,
    },
  )
}
