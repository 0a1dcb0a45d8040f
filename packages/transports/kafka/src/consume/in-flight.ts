import { type Delivery, decodeHeaders, type FailureCycle, FIRST_CYCLE } from '@redrive/core'
import {
  cloudEventKey,
  type Headers,
  type KafkaDelivery,
  type KafkaRecord,
  laneOf,
  positionOf,
  readable,
  text,
} from '../delivery.ts'
import type { Partition } from './partition.ts'

const NO_BYTES: Uint8Array = new Uint8Array()
const NO_HEADERS: Headers = Object.freeze({})
const NO_PROBLEMS: readonly string[] = Object.freeze([])

export interface InFlightOptions {
  readonly partition: Partition | undefined
  readonly deliveryCount: number
  /** Time since the record was due. It counts towards the rest of a split delay. */
  readonly lateMs?: number
}

/**
 * A delivery in flight. Most of its properties are read only after a failure, so they are computed when
 * they are read.
 */
export class InFlightDelivery implements KafkaDelivery {
  readonly raw: KafkaRecord
  readonly source: string
  readonly deliveryCount: number
  readonly type: string | undefined = undefined
  readonly contentType: string | undefined = undefined
  readonly headers: Headers = NO_HEADERS
  readonly cycle: FailureCycle = FIRST_CYCLE
  readonly replayId: string | undefined = undefined
  readonly replaces?: string
  readonly headerProblems: readonly string[] = NO_PROBLEMS
  /** The partition; undefined when the delivery is no longer in flight. */
  partition: Partition | undefined
  /** Index in the dispatcher's list of deliveries in flight. */
  slot = 0
  #id: string | undefined
  readonly #key: string | undefined

  constructor(
    source: string,
    raw: KafkaRecord,
    { partition, deliveryCount, lateMs = 0 }: InFlightOptions,
  ) {
    this.raw = raw
    this.source = source
    this.partition = partition
    this.deliveryCount = deliveryCount
    if (raw.headers.length === 0) return
    const decoded = decodeHeaders(readable(raw.headers))
    const { id, key, cycle, replayId, replaces, problems, foreign } = decoded
    this.#id = id
    this.#key = key ?? cloudEventKey(foreign)
    this.type = text(foreign, 'ce_type')
    this.contentType = text(foreign, 'content-type') ?? text(foreign, 'ce_datacontenttype')
    this.headers = foreign
    const remainingMs = Math.max(0, cycle.remainingMs - lateMs)
    this.cycle = cycle.remainingMs === 0 ? cycle : { ...cycle, remainingMs }
    this.replayId = replayId
    if (replaces !== undefined) this.replaces = replaces
    this.headerProblems = problems
  }

  get id(): string {
    this.#id ??= positionOf(this.raw)
    return this.#id
  }

  get key(): string {
    return this.#key ?? this.id
  }

  get lane(): string | undefined {
    return laneOf(this.raw)
  }

  get bytes(): Uint8Array {
    return this.raw.value ?? NO_BYTES
  }

  get isTombstone(): boolean {
    return this.raw.value === null
  }
}

/** Returns the plain delivery, without the Kafka record and partition. */
export function saidBy(delivery: KafkaDelivery): Delivery {
  const { id, source, lane, key, type, bytes, isTombstone, contentType, headers } = delivery
  const { cycle, deliveryCount, replayId, replaces, headerProblems } = delivery
  return {
    id,
    source,
    lane,
    key,
    type,
    bytes,
    ...(isTombstone === true ? { isTombstone } : {}),
    contentType,
    headers,
    cycle,
    deliveryCount,
    replayId,
    ...(replaces === undefined ? {} : { replaces }),
    headerProblems,
  }
}
