import type { RedriveEvent } from '@redrive/runtime'

/** One observation, recorded when it happened. The checker reads only these and the broker. */
export type Fact =
  | { readonly what: 'sent'; readonly at: number; readonly id: string }
  | {
      readonly what: 'attempt'
      readonly at: number
      readonly id: string
      readonly process: number
      readonly number: number
      readonly cycle: number
      readonly historyLength: number
    }
  /** The handler of an attempt ended, with or without success. */
  | { readonly what: 'ended'; readonly at: number; readonly id: string; readonly process: number }
  /** The process received a delivery of the message (1), or settled, returned or lost one (-1). */
  | {
      readonly what: 'owned'
      readonly at: number
      readonly id: string
      readonly process: number
      readonly change: 1 | -1
    }
  | { readonly what: 'started'; readonly at: number; readonly process: number }
  | {
      readonly what: 'died'
      readonly at: number
      readonly process: number
      /** The message that killed it; undefined when it was killed from outside. */
      readonly handling: string | undefined
      /** Everything it held or was being sent. */
      readonly inFlight: readonly string[]
    }
  | { readonly what: 'effect'; readonly at: number; readonly id: string; readonly process: number }
  /** A disruption that allows one more copy or one more run of this message. */
  | { readonly what: 'disrupted'; readonly at: number; readonly id: string; readonly why: string }
  | { readonly what: 'event'; readonly at: number; readonly event: RedriveEvent }
  | { readonly what: 'fault'; readonly at: number; readonly text: string }

/** Why a message is disrupted whose handler ignored its signal. */
export const LATE = 'continued after its timeout'

export class History {
  readonly facts: Fact[] = []
  readonly #startedAt: number

  constructor(startedAt: number) {
    this.#startedAt = startedAt
  }

  write(fact: Fact): void {
    this.facts.push(fact)
  }

  lines(): readonly string[] {
    return this.facts.map(
      (fact) => `${String(fact.at - this.#startedAt).padStart(8)}  ${textOf(fact)}`,
    )
  }
}

function textOf(fact: Fact): string {
  switch (fact.what) {
    case 'sent':
      return `sent ${fact.id}`
    case 'attempt':
      return `p${fact.process} attempt ${fact.number} of ${fact.id} (cycle ${fact.cycle})`
    case 'ended':
      return `p${fact.process} attempt of ${fact.id} ended`
    case 'owned':
      return `p${fact.process} ${fact.change === 1 ? 'owns' : 'gives up'} a delivery of ${fact.id}`
    case 'started':
      return `p${fact.process} starts`
    case 'died':
      return `p${fact.process} dies${fact.handling === undefined ? '' : ` of ${fact.handling}`} with ${fact.inFlight.join(' ') || 'nothing'} in flight`
    case 'effect':
      return `p${fact.process} effect of ${fact.id}`
    case 'disrupted':
      return `disrupted ${fact.id}: ${fact.why}`
    case 'fault':
      return `FAULT ${fact.text}`
    case 'event':
      return eventText(fact.event)
  }
}

function eventText(event: RedriveEvent): string {
  switch (event.type) {
    case 'attempt_failed':
      return `  failed ${event.deliveryId}: ${event.class} ${event.code ?? ''} ${event.counted ? '' : '(not counted)'}`
    case 'enacted': {
      const { decision, enactment } = event
      const delay = decision.kind === 'retryAt' ? ` in ${decision.delayMs} ms` : ''
      const done = enactment.kind === 'done' ? enactment.destination : enactment.kind
      return `  ${decision.kind} (${decision.reason})${delay} ${event.deliveryId} → ${done}`
    }
    case 'inline_retry':
      return `  inline retry of ${event.deliveryId} in ${event.delayMs} ms`
    case 'breaker_changed':
      return `  breaker ${event.from} → ${event.to}`
    case 'consumer_paused':
      return `  paused: ${event.reason}`
    default:
      return `  ${event.type}`
  }
}
