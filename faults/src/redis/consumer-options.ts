import type { ConsumerOptions } from '../harness/consumer-options.ts'

/** Additional options of a Redis consumer. */
export interface RedisConsumerOptions extends ConsumerOptions {
  readonly url: string
  readonly lease: '5s' | '15s'
  /** Whether the client sends requests without a response again after a reconnect, as ioredis does. */
  readonly isResending: boolean
  readonly failpoint?: Failpoint
}

/** A point in a script at which the process kills itself. */
export type Point =
  | 'before'
  /** The server has run the script; the transport has not received the response. */
  | 'after'

/** The step of a message that a script does. */
export type Step =
  | 'declare'
  | 'claim'
  | 'settle'
  | 'give-back'
  | 'retry'
  | 'dead-letter'
  | 'quarantine'

export interface Failpoint {
  readonly step: Step
  readonly point: Point
}
