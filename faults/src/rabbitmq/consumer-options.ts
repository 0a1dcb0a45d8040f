import type { PolicyOptions } from '@redrive/core'

/** Everything a consumer process is told; it travels as JSON. */
export interface ConsumerOptions {
  /** Names the process and its history file. */
  readonly name: string
  readonly folder: string
  readonly run: string
  readonly databaseUrl: string
  readonly urls: readonly string[]
  readonly queues: readonly string[]
  readonly topology?: 'declare' | 'verify'
  readonly policy: JsonPolicy
  /** How long the handler works on a message. */
  readonly workMs: number
  /** Whether messages of the kind `outage` find their dependency down. */
  readonly isDependencyDown?: boolean
  readonly failpoint?: Failpoint
}

/** The part of a policy that is plain data. */
export type JsonPolicy = Omit<PolicyOptions, 'classify' | 'deadLetter'>

/** A moment in the life of a hand-off at which the process kills itself. */
export type Point =
  | 'publish.before'
  /** The copy has left the process; the confirm has not been read. */
  | 'publish.written'
  /** The confirm is there; the transport has not been told. */
  | 'confirm.arrived'
  | 'confirm.seen'
  | 'ack.before'
  | 'ack.written'
  | 'declare.before'
  | 'declare.after'
  | 'consume.before'
  | 'consume.after'
  | 'cancel.before'
  | 'cancel.after'

export interface Failpoint {
  readonly point: Point
  /** Ends the name of the queue whose copy is meant; without it, whatever comes first. */
  readonly queue?: string
}

/** What the harness asks a consumer process. */
export type Request = 'stop' | 'stats'

/** What a consumer process answers. */
export type Answer = { readonly kind: 'ready' } | { readonly kind: 'stats'; readonly busy: number }
