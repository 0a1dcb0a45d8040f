import type { Unreadable } from '../finding.ts'

/** The live settings of a queue of SQS. A setting is undefined when the server does not return it. */
export interface SqsQueueFacts {
  readonly name: string
  /** Its address, for commands. */
  readonly url: string
  readonly retentionMs: number | undefined
  readonly visibilityMs: number | undefined
  readonly maxBytes: number | undefined
  /** Whether SQS drops a message with the same body as an earlier one. Only FIFO queues can do that. */
  readonly isDeduplicatedByBody: boolean
  /** Undefined: SQS moves no messages. */
  readonly policy: SqsPolicyFacts | undefined
}

export interface SqsPolicyFacts {
  /** Name of the dead-letter queue. */
  readonly deadLetters: string
  readonly maxReceives: number
}

/** A queue with its dead-letter queue; undefined: it does not exist. */
export interface SqsSourceFacts {
  readonly name: string
  readonly queue: SqsQueueFacts | undefined
  /** The queue that the redrive policy names, else that of Redrive. */
  readonly deadLetters: SqsQueueFacts | undefined
}

/** The facts of the queues to check. */
export interface SqsFacts {
  readonly sources: readonly SqsSourceFacts[]
  /** The expected values. */
  readonly expects: {
    /** Deliveries without a result after which Redrive quarantines a message. */
    readonly crashLimit: number
    readonly handlerTimeoutMs: number
  }
  readonly unreadable: readonly Unreadable[]
}
