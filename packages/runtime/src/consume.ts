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
import { composeCall } from './call.ts'
import { missingCapabilities } from './capabilities.ts'
import { type Clock, systemClock } from './clock.ts'
import { Dependency, dependency as dependencyNamed } from './dependency.ts'
import { Loop, type LoopStats } from './loop.ts'
import type { Decode, Message } from './message.ts'
import type { Awaitable, Inbox, Transport } from './ports.ts'

/** Your code. Return: done. Throw: Redrive does the rest. */
export type Handler<Body = unknown, Tx = undefined> = (
  message: Message<Body>,
  context: AttemptContext<Tx>,
) => Awaitable<unknown>

/** The policy, and what else a consumer may be told. */
export interface ConsumeOptions<Body = unknown, Tx = undefined> extends PolicyOptions {
  /** Any Standard Schema (zod, valibot, arktype …). The handler then gets the checked body. */
  readonly schema?: StandardSchemaV1<unknown, Body>
  /** Bytes to body, before the handler runs; may be asynchronous. Default: JSON, unless the content type says text or something binary. */
  readonly decode?: Decode
  /** What the handler calls. Consumers that name the same one share its breaker. Default: one of its own. */
  readonly dependency?: string | Dependency
  /** Makes effects happen once per business key: the handler runs in the inbox's transaction. */
  readonly inbox?: Inbox<Tx>
  /** Name of this consumer in signatures and in the inbox. Default: the source. */
  readonly name?: string
  readonly clock?: Clock
  readonly random?: Random
}

export interface StopOptions {
  /** How long stopping may take: four fifths for handlers to finish, then their signal fires. Default '25s'. */
  readonly drain?: Duration
}

export interface Consumer {
  readonly source: string
  /** The policy in force. */
  readonly policy: Policy
  readonly dependency: Dependency
  stats(): LoopStats
  /** Takes in nothing until `resume`; what runs goes on. */
  pause(): void
  resume(): void
  /** Finishes what runs, gives back the rest, closes the transport. Safe to call twice. */
  stop(options?: StopOptions): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

/** Shorter than the 30 s that orchestrators grant between the signal and the kill. */
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
    clock = systemClock,
    random = Math.random,
    ...policyOptions
  } = options
  const policy = within(resolvePolicy(policyOptions), inbox?.atOnce)
  refuseMissing(policy, transport)
  refuseForgetful(policy, inbox as Inbox | undefined)
  const loop = new Loop({
    transport,
    // Body and Tx are promises of the schema and the inbox; past this point they are just values.
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
  try {
    await transport.open({ deadLetterRetentionMs: policy.deadLetter.retentionMs })
    await loop.start()
  } catch (error) {
    loop.forget()
    await transport.close({ drainMs: 0 })
    throw error
  }
  return consumerOf(loop, transport, policy, dependency)
}

function consumerOf<D extends Delivery>(
  loop: Loop<D>,
  transport: Transport<D>,
  policy: Policy,
  dependency: string | Dependency,
): Consumer {
  let stopped: Promise<void> | undefined
  const stop = ({ drain = DRAIN_MS }: StopOptions = {}) => {
    stopped ??= loop.stop(drainMs(drain))
    return stopped
  }
  return {
    source: transport.source,
    policy,
    dependency: typeof dependency === 'string' ? dependencyNamed(dependency) : dependency,
    stats: () => loop.stats(),
    pause: () => loop.pause(),
    resume: () => loop.resume(),
    stop,
    [Symbol.asyncDispose]: () => stop(),
  }
}

function drainMs(drain: Duration): number {
  const ms = parseDuration(drain)
  if (ms !== undefined) return ms
  throw new RedriveError('POLICY_INVALID', `drain: expected a duration such as '10s', got ${drain}`)
}

/** More at once than the inbox can serve would wait for it, and use up their time. */
function within(policy: Policy, atOnce: number = Number.POSITIVE_INFINITY): Policy {
  return atOnce < policy.concurrency ? { ...policy, concurrency: atOnce } : policy
}

/** A key forgotten before its dead letter is: a replay would take effect twice. */
function refuseForgetful({ deadLetter }: Policy, inbox: Inbox | undefined): void {
  const keepMs = inbox?.keepMs ?? Number.POSITIVE_INFINITY
  if (keepMs >= deadLetter.retentionMs) return
  throw new RedriveError(
    'POLICY_INVALID',
    `The inbox remembers keys for ${formatDuration(keepMs)}, and dead letters are kept for ${formatDuration(deadLetter.retentionMs)}: a replay could take effect twice. Let the inbox keep them longer, or set deadLetter.retention lower.`,
  )
}

function refuseMissing(policy: Policy, { source, capabilities }: Transport): void {
  const problems = missingCapabilities(policy, capabilities)
  if (problems.length === 0) return
  throw new RedriveError(
    'CAPABILITY_MISSING',
    `${source} cannot run this policy:\n- ${problems.join('\n- ')}`,
    {
      problems,
    },
  )
}
