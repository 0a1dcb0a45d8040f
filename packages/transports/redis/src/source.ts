import { type FailureClass, decodeHeaders, nextCycle } from '@redrive/core'
import { isReply, type ScriptRunner, scriptRunner } from '@redrive/redis-internal'
import {
  type ConfirmationBatch,
  type DeadLetterSource,
  type DrainedBatch,
  type DrainedDeadLetter,
  type DrainedQueue,
  parseConfirmation,
  type ReplayMessage,
} from '@redrive/runtime'
import { contentOf, copyOf, type Entry, QUARANTINED, toDelivery } from './delivery.ts'
import {
  type RedisStreamSourceOptions,
  type ResolvedSourceOptions,
  resolveSourceOptions,
} from './options.ts'
import { putBackEnvelopeOf, putBackOf } from './put-back.ts'
import { DEPTH, LAG, PUBLISH, PUT_BACK } from './source-scripts.ts'
import { MAX_ENTRIES, Member } from './server.ts'
import { CONTROL_PLANE, type Topology, topologyOf } from './topology.ts'

/** 1 minute: the time that a crashed control plane keeps its dead letters. */
const LEASE_MS = 60_000
/** 1,000 per stream are counted exactly: about a millisecond. For more, the count of the server is precise enough. */
const COUNTED = 1_000

/** The control plane's access to the dead letters of a stream and a group. */
export class RedisStreamSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  readonly #options: ResolvedSourceOptions
  readonly #topology: Topology
  readonly #runScript: ScriptRunner
  readonly #deadLetters: Member
  readonly #confirmations: Member
  /** Functions that return the claimed entries. */
  readonly #open = new Set<() => Promise<void>>()

  /** @internal */
  constructor(options: ResolvedSourceOptions) {
    this.source = options.stream
    this.#options = options
    this.#topology = topologyOf(options.stream, options.group)
    this.#runScript = scriptRunner({ ...options, replies: 'text' })
    this.#deadLetters = this.#memberOf(this.#topology.deadLetters)
    this.#confirmations = this.#memberOf(this.#topology.replayed)
  }

  #memberOf(stream: string): Member {
    const { client, timeoutMs } = this.#options
    return new Member({
      ...{ client, timeoutMs, group: CONTROL_PLANE },
      ...{ streams: [stream], isLastShared: false },
    })
  }

  async drain({ limit }: { readonly limit: number }): Promise<DrainedBatch> {
    const entries = await claimFrom(this.#deadLetters, limit)
    return {
      deadLetters: entries.map((entry) => this.#read(entry)),
      ...this.#endActions(this.#deadLetters, entries),
    }
  }

  async confirmations({ limit }: { readonly limit: number }): Promise<ConfirmationBatch> {
    const entries = await claimFrom(this.#confirmations, limit)
    const confirmations = entries.flatMap(
      ({ fields }) => parseConfirmation(contentOf(fields, '').bytes) ?? [],
    )
    return { confirmations, ...this.#endActions(this.#confirmations, entries) }
  }

  /** Returns the two actions that end a batch. Only the first call has an effect; `close` ends open batches. */
  #endActions(
    member: Member,
    entries: readonly Entry[],
  ): Pick<DrainedBatch, 'release' | 'abandon'> {
    const end = async (what: 'done' | 'return') => {
      if (!this.#open.has(abandon)) return
      await member.end(entries.map((entry) => ({ what, entry })))
      this.#open.delete(abandon)
    }
    const abandon = () => end('return')
    this.#open.add(abandon)
    return { release: () => end('done'), abandon }
  }

  #read(entry: Entry): DrainedDeadLetter {
    const { headers } = contentOf(entry.fields, this.#options.body)
    const {
      source: origin = this.source,
      reason = 'unknown',
      handler,
      stack,
    } = decodeHeaders(headers)
    const { entry: _, ...read } = toDelivery(
      this.source,
      { ...entry, count: 1 },
      this.#options.body,
    )
    const { [QUARANTINED]: quarantined } = headers
    const failureClass: FailureClass = read.cycle.history.at(-1)?.class ?? 'unknown'
    const hasBytes = Object.values(read.headers).some((value) => Buffer.isBuffer(value))
    return {
      delivery: { ...read, source: origin },
      origin,
      envelope: putBackEnvelopeOf(headers),
      quarantined: quarantined !== undefined,
      class: failureClass,
      reason,
      identity: 'stable',
      ...(handler === undefined ? {} : { handler }),
      ...(stack === undefined ? {} : { stack }),
      ...(hasBytes ? { problem: NOT_TEXT } : {}),
    }
  }

  async publish({ deadLetter: { delivery }, replayId }: ReplayMessage): Promise<void> {
    const { fields } = copyOf(delivery, { cycle: nextCycle(delivery.cycle), replayId })
    const { replays, own } = this.#topology
    await this.#runScript(PUBLISH, [replays, own], [replayId, ...fields])
  }

  /** Adds dead letters to the stream of dead letters again, unchanged. */
  async putBack(deadLetters: readonly DrainedDeadLetter[]): Promise<void> {
    for (const deadLetter of deadLetters) {
      await this.#runScript(PUT_BACK, [this.#topology.deadLetters], putBackOf(deadLetter))
    }
  }

  async depth(): Promise<number> {
    return Number(await this.#runScript(DEPTH, [this.#topology.deadLetters], []))
  }

  async queues(): Promise<readonly DrainedQueue[]> {
    return [{ name: this.#topology.deadLetters, depth: await this.depth() }]
  }

  /** Returns the number of messages that consumers could handle now, or handle now. */
  async lag(): Promise<number> {
    const { own, stream, retry, group } = this.#topology
    return Number(await this.#runScript(LAG, [own, stream, retry], [group, String(COUNTED)]))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open].map((abandon) => abandon()))
    await Promise.all([this.#deadLetters.leave(), this.#confirmations.leave()].map(ignoreMissing))
  }
}

/** Claims entries. Creates the stream when no consumer has done it. */
async function claimFrom(member: Member, limit: number): Promise<readonly Entry[]> {
  const claim = () => member.claim({ count: Math.min(limit, MAX_ENTRIES), leaseMs: LEASE_MS })
  try {
    return (await claim()).entries
  } catch (error) {
    if (!isReply(error, 'NOGROUP')) throw error
    await member.declare(['0'])
    return (await claim()).entries
  }
}

/** Ignores a missing stream: then the consumer has nothing to leave. */
async function ignoreMissing(leaving: Promise<void>): Promise<void> {
  try {
    await leaving
  } catch (error) {
    if (!isReply(error, 'NOGROUP') && !isReply(error, 'ERR')) throw error
  }
}

const NOT_TEXT = {
  code: 'headers_not_publishable',
  message: 'A field of the message is not text. Put it back, and let a consumer handle it.',
} as const

/** Creates the control plane's access to the dead letters of a stream and a group. */
export function redisStreamSource(options: RedisStreamSourceOptions): RedisStreamSource {
  return new RedisStreamSource(resolveSourceOptions(options))
}
