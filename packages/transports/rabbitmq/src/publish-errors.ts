import { RedriveError } from '@redrive/core'

/** The destination of a message. */
interface Target {
  readonly exchange: string
  readonly routingKey: string
}

export const notConnected = (): RedriveError => unknown('there is no connection to the broker')

export const unknown = (why: string, cause?: unknown): RedriveError =>
  new RedriveError(
    'OUTCOME_UNKNOWN',
    `The broker may or may not have stored a message: ${why}${because(cause)}.`,
    {
      cause,
    },
  )

export const refused = (cause: unknown, what = 'a message'): RedriveError =>
  new RedriveError('REFUSED', `The broker rejected ${what}${because(cause)}.`, { cause })

export const unroutable = (target: Target, reply: string): RedriveError =>
  new RedriveError(
    'UNROUTABLE',
    `The broker could not route a message to ${nameOf(target)}: ${reply}. Check that the queue exists and is bound.`,
  )

/** A queue rejected a message with `basic.nack`. Through an exchange, another queue may have stored it. */
export const rejectedByQueue = (target: Target, cause: unknown, isSink: boolean): RedriveError =>
  new RedriveError(
    target.exchange === '' && !isSink ? 'REFUSED' : 'OUTCOME_UNKNOWN',
    `The broker rejected a message to ${nameOf(target)}. If the queue is full (x-max-length or a policy, with reject-publish), remove messages or raise the limit. Otherwise look for a failure of the queue in the log of the broker.`,
    { cause },
  )

const nameOf = ({ exchange, routingKey }: Target) =>
  exchange === '' ? `queue ${routingKey}` : `exchange ${exchange}, key ${routingKey}`

const because = (cause: unknown) => (cause instanceof Error ? ` (${cause.message})` : '')
