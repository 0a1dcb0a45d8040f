import type { ReplayRequest, ReplayRun, Turn } from '@redrive/catalog'
import type { Duration } from '@redrive/core'

/** The kind of source: where dead letters come from and replays are published. */
export type Kind = 'rabbitmq' | 'kafka' | 'postgres'

/** Everything a process needs to reach the system under test. */
export interface Where {
  readonly kind: Kind
  /** The queue or topic; also the name of the source, of the consumer and of the run. */
  readonly queue: string
  readonly amqpUrl: string
  readonly kafkaBroker: string
  /** Database with the effects, the inbox, and the outbox when that is the source. */
  readonly consumerUrl: string
  readonly catalogUrl: string
}

/** The role of a process of the control plane. */
export type Role = 'ingest' | 'operator' | 'publish' | 'settle'

/** A point in its work at which a process dies or stops. */
export type Point =
  | 'plan not committed'
  | 'plan committed'
  | 'approval not committed'
  | 'approval committed'
  | 'claimed'
  | 'begun'
  | 'publish called'
  /** The message never arrives, and no error is reported. */
  | 'publish lost'
  | 'publish proven'
  | 'mark wanted'
  | 'ingest not committed'
  | 'ingest committed'
  | 'confirmations not written'
  | 'confirmations written'

export interface Failpoint {
  readonly point: Point
  /** Number of the time at which the point applies, from 1. */
  readonly nth: number
  /** `stop`: the process is stopped until another process continues it. Default `die`. */
  readonly what?: 'die' | 'stop'
}

export interface WorkerOptions extends Where {
  readonly role: Role
  readonly failpoint?: Failpoint
  /** The operator's request, and the approver if the operator also approves. */
  readonly request?: ReplayRequest
  readonly approver?: string
}

/** A message from a worker to the harness. */
export type WorkerMessage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'turn'; readonly turn: Turn }
  | { readonly kind: 'planned'; readonly run: ReplayRun }
  | { readonly kind: 'approved'; readonly run: ReplayRun }
  | { readonly kind: 'refused'; readonly message: string }

export interface CatalogConsumerOptions extends Where {
  readonly name: string
  readonly folder: string
  /** The process dies after this number of inbox commits, before it reports the last one. */
  readonly diesAfter?: number
  /** Time until other consumers take over after its death. Default: the transport's default. */
  readonly takeOver?: Duration
}

/** Content of a message: the number of cycles in which the handler fails. */
export interface Body {
  readonly id: string
  readonly fails: number
}
