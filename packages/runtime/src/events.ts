import { channel } from 'node:diagnostics_channel'
import type { CoreEvent, Decision } from '@redrive/core'
import type { FailedResult } from './emit/result.ts'
import type { Enactment, OutboundEvent } from './ports.ts'

/** What happened, as data: everything `decide` noticed, and what the runtime did about it. */
export type RedriveEvent =
  | CoreEvent
  /** A decision was carried out, or could not be. */
  | {
      readonly type: 'enacted'
      readonly at: number
      readonly source: string
      readonly deliveryId: string
      readonly decision: Decision
      readonly enactment: Enactment
    }
  /** A retry too soon for a hand-off: it waits in this process. */
  | {
      readonly type: 'inline_retry'
      readonly at: number
      readonly source: string
      readonly deliveryId: string
      readonly delayMs: number
    }
  | {
      readonly type: 'consumer_paused'
      readonly at: number
      readonly source: string
      /** Why, in the words of the decision; undefined end: until someone resumes it. */
      readonly reason: PauseReason
      readonly until: number | undefined
    }
  | { readonly type: 'consumer_resumed'; readonly at: number; readonly source: string }
  | {
      readonly type: 'headers_unreadable'
      readonly at: number
      readonly source: string
      readonly deliveryId: string
      readonly problems: readonly string[]
    }
  /** The broker has not confirmed a hand-off several times in a row; it is asked again until it does. */
  | {
      readonly type: 'hand_off_stuck'
      readonly at: number
      readonly source: string
      readonly deliveryId: string
      readonly error: unknown
    }
  /** The transport lost its connection, and with it what was in hand; it is trying to get it back. */
  | {
      readonly type: 'connection_lost'
      readonly at: number
      readonly source: string
      readonly error: unknown
    }
  | { readonly type: 'connection_restored'; readonly at: number; readonly source: string }
  /** The broker takes no copies for a while, and says why; without a reason it does again. */
  | {
      readonly type: 'broker_blocked'
      readonly at: number
      readonly source: string
      readonly reason: string | undefined
    }
  /** The broker deleted messages before they were consumed: they were older than it keeps them. */
  | {
      readonly type: 'messages_expired'
      readonly at: number
      readonly source: string
      /** In the broker's words: a topic and its partition. */
      readonly where: string
      readonly count: number
    }
  /** An event did not reach a sink. Told also where nobody waits for it. */
  | {
      readonly type: 'emission_failed'
      readonly at: number
      /** The sink. */
      readonly source: string
      readonly event: OutboundEvent
      readonly result: FailedResult
      readonly job: string | undefined
    }
  /** Dead letters of a sink were sent again. */
  | {
      readonly type: 'replayed'
      readonly at: number
      readonly source: string
      readonly replayed: number
      readonly failed: number
    }
  /** The store was cleaned up. */
  | {
      readonly type: 'cleaned_up'
      readonly at: number
      readonly source: string
      readonly count: number
    }
  /** A rule of yours, a transport or a store threw where it must not; a rule then counts as not matching. */
  | {
      readonly type: 'user_code_failed'
      readonly at: number
      readonly source: string
      readonly where: string
      readonly error: unknown
    }

export type PauseReason =
  | 'dependency_sick'
  | 'flood'
  /** The broker does not confirm what we hand over. */
  | 'hand_off_failing'
  /** A message suspected of killing processes runs alone. */
  | 'trial'
  | 'asked'

/** The name of the diagnostics channel every event is published on. */
export const EVENT_CHANNEL = 'redrive:event'

const events = channel(EVENT_CHANNEL)

/** True when someone listens: an event that nobody reads is not even built. */
export const hasListeners = (): boolean => events.hasSubscribers

export function publish(event: RedriveEvent): void {
  if (events.hasSubscribers) events.publish(event)
}

/** Calls the listener for every event of this process. Returns what ends it. */
export function onEvent(listener: (event: RedriveEvent) => void): () => void {
  const onMessage = (message: unknown) => {
    try {
      listener(message as RedriveEvent)
    } catch (error) {
      // Left alone, it would end the process: a listener must not be able to do that.
      process.emitWarning(
        error instanceof Error ? error : new Error(String(error)),
        'RedriveListener',
      )
    }
  }
  events.subscribe(onMessage)
  return () => {
    events.unsubscribe(onMessage)
  }
}
