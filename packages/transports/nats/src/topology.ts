/** 2 minutes, the default of the server: a hand-off or replay that is repeated within it is stored once. */
export const DUPLICATE_WINDOW_MS = 120_000

/** End of the names of streams with dead letters. */
export const DEAD_LETTERS = '-dlq'

/** The streams, subjects and consumers that belong to one consumer of a stream. */
export interface Topology {
  /** The stream with the messages of the producers. It is never changed. */
  readonly stream: string
  /** The durable consumer of the stream. */
  readonly consumer: string
  readonly retry: RetryTopology
  readonly dead: DeadTopology
}

/** Copies that wait for this consumer: retries, returned messages and replays. */
export interface RetryTopology {
  readonly stream: string
  readonly consumer: string
  /** Copies that are due. */
  readonly subject: string
  /** Copies that wait for their time, each on a subject that begins with this. */
  readonly delayed: string
}

/** Dead letters, quarantine and confirmations of replays. */
export interface DeadTopology {
  readonly stream: string
  readonly deadLetters: string
  readonly quarantine: string
  readonly confirmations: string
  /** Advisories of the server about messages that another program gave up. */
  readonly advisories: readonly string[]
  readonly deadConsumer: string
  readonly confirmationConsumer: string
}

/** Returns the names of the streams of Redrive for one consumer of a stream. */
export function topologyOf(stream: string, consumer: string, prefix?: string): Topology {
  const name = prefix ?? `${stream}-${consumer}`
  const subject = `redrive.${name}`
  return {
    stream,
    consumer,
    retry: {
      stream: `${name}-retry`,
      consumer: 'redrive',
      subject: `${subject}.retry`,
      delayed: `${subject}.delayed`,
    },
    dead: {
      stream: `${name}${DEAD_LETTERS}`,
      deadLetters: `${subject}.dead`,
      quarantine: `${subject}.quarantine`,
      confirmations: `${subject}.replayed`,
      advisories: ADVISORIES.map(
        (kind) => `$JS.EVENT.ADVISORY.CONSUMER.${kind}.${stream}.${consumer}`,
      ),
      deadConsumer: 'dead-letters',
      confirmationConsumer: 'confirmations',
    },
  }
}

/** The advisories that a plain consumer causes: it failed too often, or ended the message with `term`. */
const ADVISORIES = ['MAX_DELIVERIES', 'MSG_TERMINATED'] as const
