import type { ReplayRequest, ReplayRun, Turn } from '@redrive/catalog'
import type { Duration } from '@redrive/core'

/** Where dead letters come from and replays go to. */
export type Kind = 'rabbitmq' | 'kafka' | 'postgres'

/** Everything a process needs to reach what is under test. */
export interface Where {
  readonly kind: Kind
  /** The queue or topic; also the name of the source, of the consumer and of the run. */
  readonly queue: string
  readonly amqpUrl: string
  readonly kafkaBroker: string
  /** Effects, the inbox, and the outbox when that is the source. */
  readonly consumerUrl: string
  readonly catalogUrl: string
}

/** What a process of the control plane does. */
export type Role = 'ingest' | 'operator' | 'publish' | 'settle'

/** A moment in its work at which a process ends or stands still. */
export type Point =
  | 'plan not committed'
  | 'plan committed'
  | 'approval not committed'
  | 'approval committed'
  | 'claimed'
  | 'begun'
  | 'publish called'
  /** It never gets anywhere, although nobody says so. */
  | 'publish lost'
  | 'publish proven'
  | 'mark wanted'
  | 'ingest not committed'
  | 'ingest committed'
  | 'confirmations not written'
  | 'confirmations written'

export interface Failpoint {
  readonly point: Point
  /** The how manieth time it is reached, from 1. */
  readonly nth: number
  /** Once it stands still, somebody else makes it go on. Default `die`. */
  readonly what?: 'die' | 'stop'
}

export interface WorkerOptions extends Where {
  readonly role: Role
  readonly failpoint?: Failpoint
  /** What an operator asks for, and who approves it when told to. */
  readonly request?: ReplayRequest
  readonly approver?: string
}

/** What a worker tells the harness. */
export type Told =
  | { readonly kind: 'ready' }
  | { readonly kind: 'turn'; readonly turn: Turn }
  | { readonly kind: 'planned'; readonly run: ReplayRun }
  | { readonly kind: 'approved'; readonly run: ReplayRun }
  | { readonly kind: 'refused'; readonly message: string }

export interface CatalogConsumerOptions extends Where {
  readonly name: string
  readonly folder: string
  /** It dies when so many transactions of its inbox are committed, before anybody hears of the last. */
  readonly diesAfter?: number
  /** Until others take over from it when it died. Default: the transport's own. */
  readonly takeOver?: Duration
}

/** What the messages say: in so many cycles the handler fails. */
export interface Body {
  readonly id: string
  readonly fails: number
}
