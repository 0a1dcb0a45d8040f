import { formatDuration, type Policy, type PolicyOptions, type Random } from '@redrive/core'
import {
  type Check,
  FUNCTION,
  readOptions,
  readPolicy,
  type Section,
  shown,
  withMethods,
} from '@redrive/core/internal'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { CLOCK, INBOX, LOGGER, MAX_CONCURRENCY, SCHEMA, TRANSPORT, visibleName } from './checks.ts'
import { type Clock, systemClock } from './clock.ts'
import { Dependency, dependency as dependencyNamed } from './dependency.ts'
import { type Logger, stderrLogger } from './log/logger.ts'
import type { Decode } from './message.ts'
import type { SignFailure } from './own-signature.ts'
import type { Inbox } from './ports/inbox.ts'
import type { Transport } from './ports/transport.ts'
import { whyUnusable } from './transport-use.ts'

/** The policy and the other options of a consumer. */
export interface ConsumeOptions<Body = unknown, Tx = undefined> extends PolicyOptions {
  /** Any Standard Schema (zod, valibot, arktype …). The handler then gets the validated body. Default: none. */
  readonly schema?: StandardSchemaV1<unknown, Body>
  /** Converts bytes to the body before the handler runs; may be asynchronous. Default: by content type, and JSON without one. */
  readonly decode?: Decode
  /**
   * The service that the handler calls. Consumers with the same name share its breaker, so they need the same
   * settings of `breaker` and `outage`. Default: a separate one.
   */
  readonly dependency?: string | Dependency
  /** Makes effects happen once per business key: the handler runs in the inbox's transaction. Default: none. */
  readonly inbox?: Inbox<Tx>
  /**
   * Gives a failure its signature, which decides about its failure group: a text of 1 to 200 characters. `undefined`, and
   * an error of the function, leave it to the rules. Default: the rules of Redrive.
   */
  readonly signature?: SignFailure
  /** Name of this consumer in signatures and in the inbox. Default: the source. */
  readonly name?: string
  /** Where the consumer reports problems, one line each: `console`, pino or 'off'. Default: stderr. */
  readonly logger?: Logger | 'off'
  /** Clock for all waits and timestamps; a test can control it. Default: the system's. */
  readonly clock?: Clock
  /** Source of random numbers for jitter. Default: `Math.random`. */
  readonly random?: Random
}

/** The arguments of `consume`, before they are checked. */
export interface ConsumeArguments {
  readonly transport: unknown
  readonly handler: unknown
  readonly options: unknown
}

/** The checked options with defaults. Body and Tx are types of the schema and the inbox; here they are plain values. */
export interface ResolvedConsumeOptions {
  readonly policy: Policy
  readonly schema: StandardSchemaV1 | undefined
  readonly decode: Decode | undefined
  readonly dependency: Dependency
  readonly inbox: Inbox | undefined
  readonly signature: SignFailure | undefined
  readonly name: string
  readonly logger: Logger | 'off'
  readonly clock: Clock
  readonly random: Random
}

/** Checks all arguments of `consume`. Throws one error that lists every problem. A new option is one line here. */
export function readConsumeOptions({
  transport,
  handler,
  options,
}: ConsumeArguments): ResolvedConsumeOptions {
  return readOptions('consume()', options, (top) => {
    const source = readSource(top, transport)
    if (typeof handler !== 'function') {
      top.problem('handler', `expected a function, got ${shown(handler)}`)
    }
    const inbox = top.ifGiven<Inbox>('inbox', INBOX)
    const policy = limitConcurrency(readPolicy(top, 'consumer'), readLimit(top, inbox))
    checkInboxRetention(top, policy, inbox)
    return {
      policy,
      schema: top.ifGiven<StandardSchemaV1>('schema', SCHEMA),
      decode: top.ifGiven<Decode>('decode', FUNCTION),
      dependency: readDependency(top, source, policy),
      inbox,
      signature: top.ifGiven<SignFailure>('signature', FUNCTION),
      name: top.ifGiven<string>('name', visibleName('the name of the consumer')) ?? source,
      logger: top.ifGiven<Logger | 'off'>('logger', LOGGER) ?? stderrLogger,
      clock: top.ifGiven<Clock>('clock', CLOCK) ?? systemClock,
      random: top.ifGiven<Random>('random', FUNCTION) ?? Math.random,
    }
  })
}

/** Returns the source of the transport. */
function readSource(top: Section, transport: unknown): string {
  if (!TRANSPORT.isValid(transport)) {
    top.problem('transport', `expected ${TRANSPORT.expected}, got ${shown(transport)}`)
    return UNNAMED
  }
  const { source } = transport as Transport
  if (typeof source !== 'string' || source === '') {
    top.problem(
      'transport',
      `expected a transport with the name of its source, got ${shown(source)}`,
    )
    return UNNAMED
  }
  const problem = whyUnusable(transport as Transport, source)
  if (problem !== undefined) top.problem('transport', problem)
  return source
}

/** The source while other options are checked. No consumer starts with it. */
const UNNAMED = 'unnamed'

function readDependency(top: Section, source: string, { breaker, outage }: Policy): Dependency {
  const given = top.ifGiven<string | Dependency>('dependency', DEPENDENCY)
  if (!DEPENDENCY.isValid(given)) return new Dependency(source)
  const dependency = typeof given === 'string' ? dependencyNamed(given) : (given as Dependency)
  const conflict = dependency.conflictWith({ source, breaker, outage })
  if (conflict !== undefined) top.problem('dependency', conflict)
  return dependency
}

const NAME = visibleName("a name such as 'payments-api', or the result of dependency()")
/** By its methods: with two installed copies of this package, `instanceof` fails. */
const OBJECT = withMethods(NAME.expected, ['learn', 'onChange', 'join'])

const DEPENDENCY: Check = {
  ...NAME,
  isValid: (value) => NAME.isValid(value) || OBJECT.isValid(value),
}

/** Returns the limit of the inbox; undefined when it has none. */
function readLimit(top: Section, inbox: Inbox | undefined): number | undefined {
  const limit = inbox?.maxConcurrency
  if (MAX_CONCURRENCY.isValid(limit)) return limit
  const problem = `expected ${MAX_CONCURRENCY.expected}, got ${shown(limit)}`
  top.problem('inbox.maxConcurrency', problem)
  return undefined
}

/** Limits the concurrency to that of the inbox. Further attempts would wait for it and use up their timeout. */
function limitConcurrency(
  policy: Policy,
  maxConcurrency: number = Number.POSITIVE_INFINITY,
): Policy {
  return maxConcurrency < policy.concurrency ? { ...policy, concurrency: maxConcurrency } : policy
}

/** Rejects an inbox that deletes keys before dead letters expire: a replay could take effect twice. */
function checkInboxRetention(top: Section, { deadLetter }: Policy, inbox: Inbox | undefined): void {
  const retentionMs = inbox?.retentionMs ?? Number.POSITIVE_INFINITY
  if (retentionMs >= deadLetter.retentionMs) return
  top.problem(
    'inbox',
    `keeps keys for ${formatDuration(retentionMs)}, but dead letters are kept for ${formatDuration(deadLetter.retentionMs)}, so a replay could take effect twice; increase the retention of the inbox, or decrease deadLetter.retention`,
  )
}
