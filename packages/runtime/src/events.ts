import { channel } from 'node:diagnostics_channel'
import type { CoreEvent, Decision } from '@redrive/core'
import type { Awaitable } from './awaitable.ts'
import type { FailedResult } from './emit/result.ts'
import { LineLimit } from './log/line-limit.ts'
import type { OutboundEvent } from './ports/sink.ts'
import type { Enactment } from './ports/transport.ts'
import { warnOnFailure } from './warn-on-failure.ts'

/** An event of Redrive as data: everything `decide` observed, and what the runtime did. */
export type RedriveEvent =
  | (CoreEvent & EventNames)
  /** A decision was applied at the broker, or could not be applied. */
  | {
      readonly type: 'enacted'
      readonly at: number
      readonly source: string
      readonly deliveryId: string
      /** Type of the message, when the producer names one. */
      readonly eventType: string | undefined
      /** Name of the consumer. */
      readonly handler: string
      /** The decision, with its reason. */
      readonly decision: Decision
      /** Its result at the broker: `done`, `unknown`, `refused` or `lost`. */
      readonly enactment: Enactment
    }
  /** A retry that is due too soon for a hand-off waits in this process. */
  | {
      readonly type: 'inline_retry'
      readonly at: number
      readonly source: string
      readonly deliveryId: string
      /** Time until the next attempt. */
      readonly delayMs: number
    }
  /**
   * A handler still runs after its timeout and the grace period, or after its consumer stopped. Its message is retried
   * without it.
   */
  | {
      readonly type: 'handler_hung'
      readonly at: number
      readonly source: string
      readonly deliveryId: string
      /** Why the signal of the handler was aborted. */
      readonly reason: HungReason
      /** Handlers of this consumer that do not end. Each one takes a slot of `concurrency`. */
      readonly hung: number
    }
  /** The consumer stopped taking messages. */
  | {
      readonly type: 'consumer_paused'
      readonly at: number
      readonly source: string
      /** Why it paused. */
      readonly reason: PauseReason
      /** End of the pause, epoch ms; undefined: until `resume`. */
      readonly until: number | undefined
    }
  /** The consumer takes messages again. */
  | { readonly type: 'consumer_resumed'; readonly at: number; readonly source: string }
  /** Headers of Redrive on a message could not be read. The message counts as a first attempt. */
  | {
      readonly type: 'headers_unreadable'
      readonly at: number
      readonly source: string
      readonly deliveryId: string
      /** One sentence for each header. */
      readonly problems: readonly string[]
    }
  /** The broker did not confirm a hand-off several times in a row, or rejected it. It is repeated until it is confirmed. */
  | {
      readonly type: 'hand_off_stuck'
      readonly at: number
      readonly source: string
      readonly deliveryId: string
      /** Whether the broker rejected it. Otherwise, it is unknown whether the broker stored it. */
      readonly isRefused: boolean
      /** Error of the last try. */
      readonly error: unknown
    }
  /** The transport lost its connection and the deliveries in flight. It reconnects. */
  | {
      readonly type: 'connection_lost'
      readonly at: number
      readonly source: string
      /** Why the connection was lost. */
      readonly error: unknown
    }
  /** The transport is connected again. */
  | { readonly type: 'connection_restored'; readonly at: number; readonly source: string }
  /** The broker assigned parts of the source to this consumer. */
  | {
      readonly type: 'assignment_changed'
      readonly at: number
      readonly source: string
      /** Partitions of the topic. 0: other consumers of the group have all of them. */
      readonly assigned: number
    }
  /** The broker stopped accepting copies, or accepts them again. */
  | {
      readonly type: 'broker_blocked'
      readonly at: number
      readonly source: string
      /** Why it stopped; undefined: it accepts copies again. */
      readonly reason: string | undefined
    }
  /** The broker deleted messages before they were consumed, because they exceeded its retention. */
  | {
      readonly type: 'messages_expired'
      readonly at: number
      readonly source: string
      /** Location in the broker: a topic and its partition. */
      readonly where: string
      /** Number of deleted messages. */
      readonly count: number
    }
  /** A topic of the consumer does not exist, or it exists again. The other topics are read in both cases. */
  | {
      readonly type: 'topic_missing'
      readonly at: number
      readonly source: string
      /** Name of the topic. */
      readonly where: string
      /** What is missing and what to do; undefined: the topic exists again. */
      readonly problem: string | undefined
    }
  /** A topic was deleted and created again. It is read from its first record. */
  | {
      readonly type: 'topic_recreated'
      readonly at: number
      readonly source: string
      /** Location in the broker: a topic and its partition. */
      readonly where: string
    }
  /** An event did not reach a sink. Published even when the caller does not wait for it. */
  | {
      readonly type: 'emission_failed'
      readonly at: number
      /** Name of the sink. */
      readonly source: string
      /** The event. */
      readonly event: OutboundEvent
      /** Whether it was stored, dropped or lost, and why. */
      readonly result: FailedResult
      /** Name of the job of its scope; undefined outside of a job. */
      readonly job: string | undefined
    }
  /** Dead letters of a sink were sent again. */
  | {
      readonly type: 'replayed'
      readonly at: number
      /** Name of the sink. */
      readonly source: string
      /** Dead letters that the sink accepted. */
      readonly replayed: number
      /** Dead letters that it did not accept. They stay in the store. */
      readonly failed: number
    }
  /** Old dead letters were removed from the store. */
  | {
      readonly type: 'cleaned_up'
      readonly at: number
      /** Always `store`. */
      readonly source: string
      /** Number of removed dead letters. */
      readonly count: number
    }
  /**
   * A rule, a signature function, a transport or a store threw where it must not. A rule then counts as not matching. The
   * rules of Redrive then make the signature.
   */
  | {
      readonly type: 'user_code_failed'
      readonly at: number
      /** Source or sink; `store` for the store; type of the event for `rateLimit.bypass`. */
      readonly source: string
      /** Name of the function or operation that threw. */
      readonly where: string
      /** The error that it threw. */
      readonly error: unknown
    }

/** The names that the runtime adds to the events of core. */
export interface EventNames {
  /** Name of the dependency that the handler calls. */
  readonly dependency: string
  /** Name of the consumer or sink. */
  readonly handler: string
}

export type HungReason =
  /** Its attempt timed out. */
  | 'timeout'
  /** The broker took its delivery back. */
  | 'lost'
  /** The consumer stopped. */
  | 'stopping'

export type PauseReason =
  /** The dependency is unhealthy: its breaker is open. */
  | 'dependency_unhealthy'
  /** Too many similar messages became dead letters, and no other message passed. */
  | 'flood'
  /** The broker does not confirm the copies that we publish. */
  | 'hand_off_failing'
  /** Handlers that do not end hold every slot. */
  | 'handlers_hung'
  /** A message suspected of crashing processes runs alone. */
  | 'trial'
  /** `pause` was called. */
  | 'requested'

/** The name of the diagnostics channel every event is published on. */
export const EVENT_CHANNEL = 'redrive:event'

const events = channel(EVENT_CHANNEL)

/** Returns true when a listener exists. Without one, events are not created. */
export const hasListeners = (): boolean => events.hasSubscribers

/** Gets an event, and the transport that reported it, if it was one. */
type Watch = (event: RedriveEvent, transport?: object) => void

/** What watches a source: the logs and the health of its consumers. They are no listeners: settled messages publish nothing for them. */
const watches = new Map<string, Set<Watch>>()

const allWatches = new Set<Watch>()

/**
 * Passes every published event of this process to the function, except settled messages: without
 * listeners, these publish nothing. Returns a function that ends this.
 */
export function watchAll(watch: Watch): () => void {
  allWatches.add(watch)
  return () => {
    allWatches.delete(watch)
  }
}

/** Passes every published event of a source to the function. Returns a function that ends this. */
export function watchSource(source: string, watch: Watch): () => void {
  const ofSource = watches.get(source) ?? new Set()
  watches.set(source, ofSource.add(watch))
  return () => {
    ofSource.delete(watch)
    if (ofSource.size === 0 && watches.get(source) === ofSource) watches.delete(source)
  }
}

/**
 * Publishes an event to all listeners of this process. A transport passes itself, because another consumer of
 * the process may have the same source.
 */
export function publish(event: RedriveEvent, transport?: object): void {
  for (const watch of watches.get(event.source) ?? []) watch(event, transport)
  for (const watch of allWatches) watch(event, transport)
  if (events.hasSubscribers) events.publish(event)
}

/**
 * Calls the listener for every event of this process. Returns a function that removes it. A listener that throws or
 * rejects causes a warning of the process: at first ten, then one every ten seconds with the number of omitted ones.
 */
export function onEvent(listener: (event: RedriveEvent) => Awaitable<unknown>): () => void {
  const limit = new LineLimit()
  const onMessage = (message: unknown) => {
    const event = message as RedriveEvent
    const take = () => limit.take('listener', event.at)
    warnOnFailure('RedriveListener', () => listener(event), take)
  }
  events.subscribe(onMessage)
  return () => {
    events.unsubscribe(onMessage)
  }
}
