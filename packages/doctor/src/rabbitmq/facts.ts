import type { Unreadable } from '../finding.ts'

/** Settings by name, without the `x-` prefix of arguments. */
export type Settings = Readonly<Record<string, unknown>>

export interface NodeFacts {
  readonly name: string
  readonly isRunning: boolean
  readonly memoryAlarm: boolean
  readonly diskAlarm: boolean
  /** Nodes on the other side of a network partition; the node does not rejoin them automatically. */
  readonly cutOffFrom: readonly string[]
}

export interface QueueFacts {
  readonly name: string
  readonly type: string
  readonly isDurable: boolean
  readonly isAutoDelete: boolean
  readonly isExclusive: boolean
  /** The arguments of the declaration. */
  readonly arguments: Settings
  /** The settings of policies, including operator policies. */
  readonly policy: Settings
  readonly policyName: string | undefined
  /** Nodes with a copy. Undefined for classic queues, and for a short time for any queue. */
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

/** A policy as it was set. Only the matching policy with the highest priority applies to a queue. */
export interface PolicyFacts {
  readonly name: string
  readonly pattern: string
  /** `queues`, `quorum_queues`, `all` and so on. */
  readonly applyTo: string
  readonly priority: number
  readonly definition: Settings
}

/** The facts of a RabbitMQ broker. A part is undefined when it could not be read; `unreadable` contains the reason. */
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
  /** All policies of the vhost, except operator policies. */
  readonly policies: readonly PolicyFacts[] | undefined
  /** Source queues that the options list. */
  readonly sources: readonly string[]
  /** Dead-letter queues that the options list. */
  readonly deadLetterQueues: readonly string[]
  readonly handlerTimeoutMs: number | undefined
  readonly unreadable: readonly Unreadable[]
}
