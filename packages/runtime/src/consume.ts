import {
  type Delivery,
  type Duration,
  formatDuration,
  parseDuration,
  type Policy,
  type PolicyOptions,
  type Random,
  RedriveError,
  resolvePolicy,
} from '@redrive/core'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { Attempt, AttemptContext } from './attempt.ts'
import { composeCall } from './invoke.ts'
import { missingCapabilities } from './capabilities.ts'
import { type Clock, systemClock } from './clock.ts'
import { Dependency, dependency as dependencyNamed } from './dependency.ts'
import { type ConsumerStats, statsOf } from './consumer-stats.ts'
import { logConsumer } from './log/consumer-log.ts'
import type { Logger } from './log/logger.ts'
import { Loop } from './loop.ts'
import type { Decode, Message } from './message.ts'
import type { Awaitable } from './awaitable.ts'
import type { Inbox } from './ports/inbox.ts'
import type { Transport } from './ports/transport.ts'
import { releaseAll, shutDown } from './shutdown.ts'

/** Handles one message. Return to acknowledge; throw to let Redrive decide. */
export type Handler<Body = unknown, Tx = undefined> = (
  message: Message<Body>,
  context: AttemptContext<Tx>,
) => Awaitable<unknown>

/** The policy and the other options of a consumer. */
export interface ConsumeOptions<Body = unknown, Tx = undefined> extends PolicyOptions {
  /** Any Standard Schema (zod, valibot, arktype …). The handler then gets the validated body. Default: none. */
  readonly schema?: StandardSchemaV1<unknown, Body>
  /** Converts bytes to the body before the handler runs; may be asynchronous. Default: by content type, and JSON without one. */
  readonly decode?: Decode
  /** The service that the handler calls. Consumers with the same name share its breaker. Default: a separate one. */
  readonly dependency?: string | Dependency
  /** Makes effects happen once per business key: the handler runs in the inbox's transaction. Default: none. */
  readonly inbox?: Inbox<Tx>
  /** Name of this consumer in signatures and in the inbox. Default: the source. */
  readonly name?: string
  /** Where the consumer reports problems, one line each: `console`, pino or 'off'. Default: stderr. */
  readonly logger?: Logger | 'off'
  /** Clock for all waits and timestamps; a test can control it. Default: the system's. */
  readonly clock?: Clock
  /** Source of random numbers for jitter. Default: `Math.random`. */
  readonly random?: Random
}

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
  const {
    schema,
    decode,
    dependency = new Dependency(transport.source),
    inbox,
    name = transport.source,
    logger,
    clock = systemClock,
    random = Math.random,
    ...policyOptions
  } = options
  const policy = limitConcurrency(resolvePolicy(policyOptions), inbox?.maxConcurrency)
  refuseMissing(policy, transport)
  requireInboxRetention(policy, inbox as Inbox | undefined)
  const loop = new Loop({
    transport,
    // Body and Tx are types of the schema and the inbox. From here on they are plain values.
    call: composeCall({
      handler: handler as (message: Message, attempt: Attempt) => Awaitable<unknown>,
      decode,
      schema,
      inbox: inbox as Inbox | undefined,
      consumer: name,
      timeoutMs: policy.timeoutMs,
    }),
    policy,
    handlerName: name,
    dependency: typeof dependency === 'string' ? dependencyNamed(dependency) : dependency,
    clock,
    random,
  })
  const endLog = logConsumer(transport.source, clock, logger)
  try {
    await transport.open({ deadLetterRetentionMs: policy.deadLetter.retentionMs })
    await loop.start()
  } catch (error) {
    endLog()
    releaseAll(loop)
    await transport.close({ drainMs: 0 })
    throw error
  }
  return consumerOf(loop, transport, policy, dependency, endLog)
}

function consumerOf<D extends Delivery>(
  loop: Loop<D>,
  transport: Transport<D>,
  policy: Policy,
  dependency: string | Dependency,
  endLog: () => void,
): Consumer {
  let stopped: Promise<void> | undefined
  const stop = ({ drain = DRAIN_MS }: StopOptions = {}) => {
    stopped ??= shutDown(loop, drainMs(drain)).finally(endLog)
    return stopped
  }
  return {
    source: transport.source,
    policy,
    dependency: typeof dependency === 'string' ? dependencyNamed(dependency) : dependency,
    stats: () => statsOf(loop),
    pause: () => loop.capacity.pause(),
    resume: () => loop.capacity.resume(),
    stop,
    [Symbol.asyncDispose]: () => stop(),
  }
}

function drainMs(drain: Duration): number {
  const ms = parseDuration(drain)
  if (ms !== undefined) return ms
  throw new RedriveError(
    'POLICY_INVALID',
    `drain: expected a duration such as '10s', got "${drain}"`,
  )
}

/** Limits the concurrency to that of the inbox. Further attempts would wait for it and use up their timeout. */
function limitConcurrency(
  policy: Policy,
  maxConcurrency: number = Number.POSITIVE_INFINITY,
): Policy {
  return maxConcurrency < policy.concurrency ? { ...policy, concurrency: maxConcurrency } : policy
}

/** Rejects an inbox that deletes keys before dead letters expire: a replay could take effect twice. */
function requireInboxRetention({ deadLetter }: Policy, inbox: Inbox | undefined): void {
  const retentionMs = inbox?.retentionMs ?? Number.POSITIVE_INFINITY
  if (retentionMs >= deadLetter.retentionMs) return
  throw new RedriveError(
    'POLICY_INVALID',
    `The inbox keeps keys for ${formatDuration(retentionMs)}, but dead letters are kept for ${formatDuration(deadLetter.retentionMs)}, so a replay could take effect twice. Increase the retention of the inbox, or decrease "deadLetter.retention".`,
  )
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
