import type { Unreadable } from '../finding.ts'
import type { NatsSource } from './names.ts'

export interface StreamFacts {
  readonly name: string
  readonly storage: 'file' | 'memory'
  readonly replicas: number
  readonly retention: 'limits' | 'interest' | 'workqueue'
  /** The reaction of a full stream: it deletes the oldest message, or rejects the new one. */
  readonly discard: 'old' | 'new'
  /** Limits; undefined when there is none. */
  readonly maxMessages: number | undefined
  readonly maxMessagesPerSubject: number | undefined
  readonly maxBytes: number | undefined
  readonly maxAgeMs: number | undefined
  readonly maxMessageBytes: number | undefined
  readonly messages: number
  readonly bytes: number
  /** Whether a server leads the stream now. */
  readonly hasLeader: boolean
  /** Servers with a copy that is not current. */
  readonly behind: readonly string[]
}

export interface ConsumerFacts {
  readonly stream: string
  readonly name: string
  readonly isInMemory: boolean
  /** Maximum number of unacknowledged messages; undefined when there is none. */
  readonly maxAckPending: number | undefined
  readonly ackPending: number
}

/** When a server writes its messages to the disk. */
export interface SyncFacts {
  readonly server: string
  /** Longest time before `fsync`, in ms; 0: before each confirmation. */
  readonly intervalMs: number
}

/** The facts of a JetStream server or cluster. A part is undefined when it could not be read; `unreadable` contains the reason. */
export interface NatsFacts {
  /** Version of the connected server; undefined when it could not be reached. */
  readonly version: string | undefined
  readonly streams: readonly StreamFacts[] | undefined
  readonly consumers: readonly ConsumerFacts[]
  readonly servers: readonly SyncFacts[]
  /** Bytes in files that the account uses and may use; undefined: without a limit, or not readable. */
  readonly account: { readonly used: number; readonly most: number } | undefined
  readonly sources: readonly NatsSource[]
  readonly unreadable: readonly Unreadable[]
}
