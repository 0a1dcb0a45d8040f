import type { Unreadable } from '../finding.ts'

/** Settings by name, without the `x-` of arguments. */
export type Settings = Readonly<Record<string, unknown>>

export interface NodeFacts {
  readonly name: string
  readonly isRunning: boolean
  readonly memoryAlarm: boolean
  readonly diskAlarm: boolean
  /** Nodes that it is cut off from and will not join again by itself. */
  readonly cutOffFrom: readonly string[]
}

export interface QueueFacts {
  readonly name: string
  readonly type: string
  readonly isDurable: boolean
  readonly isAutoDelete: boolean
  readonly isExclusive: boolean
  /** As declared. */
  readonly arguments: Settings
  /** What policies say, operator policies included. */
  readonly policy: Settings
  readonly policyName: string | undefined
  /** Nodes that have a copy. Undefined when the broker does not say: of classic queues, and of any for a moment. */
  readonly members: readonly string[] | undefined
  readonly online: readonly string[] | undefined
}

export interface ExchangeFacts {
  readonly name: string
  readonly type: string
  readonly isDurable: boolean
  readonly isAutoDelete: boolean
}

export interface BindingFacts {
  readonly exchange: string
  readonly to: string
  readonly toKind: 'queue' | 'exchange'
  readonly key: string
}

/** A policy as it was set; of all that match a queue the one with the highest priority applies, alone. */
export interface PolicyFacts {
  readonly name: string
  readonly pattern: string
  /** `queues`, `quorum_queues`, `all` and so on. */
  readonly applyTo: string
  readonly priority: number
  readonly definition: Settings
}

/** What was read of a RabbitMQ. A part is undefined when it could not be read; `unreadable` says why. */
export interface RabbitmqFacts {
  readonly vhost: string
  readonly version: string | undefined
  /** The user in the address, and whether the broker is on this machine. */
  readonly user: string
  readonly isLoopback: boolean
  readonly nodes: readonly NodeFacts[] | undefined
  readonly queues: readonly QueueFacts[] | undefined
  readonly exchanges: readonly ExchangeFacts[] | undefined
  readonly bindings: readonly BindingFacts[] | undefined
  /** All of the vhost, without operator policies. */
  readonly policies: readonly PolicyFacts[] | undefined
  /** Source queues that were asked for by name. */
  readonly sources: readonly string[]
  /** Dead-letter queues that were given by name. */
  readonly deadLetterQueues: readonly string[]
  readonly handlerTimeoutMs: number | undefined
  readonly unreadable: readonly Unreadable[]
}
