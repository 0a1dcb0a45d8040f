/**
 * Headers that only RabbitMQ consumers add to copies. They are removed from the message that a handler receives.
 *
 * The first sentence of each comment is the format of the value; docs/reference/headers.md prints it.
 */
export interface RabbitMqHeaderTable {
  /** Text. Exchange that the producer used; a copy is published with another. Absent: directly to the queue. */
  readonly 'redrive-exchange': string
  /** Text. Routing key that the producer used. */
  readonly 'redrive-routing-key': string
  /**
   * Whole number. Deliveries without a settlement before a copy returned the message. The broker's count of the
   * copy starts at 0.
   */
  readonly 'redrive-delivery-count': string
  /**
   * JSON, compressed when long. Headers and properties of the producer that the broker would act on again: `CC`,
   * `BCC`, expiration and user id.
   */
  readonly 'redrive-aside': string
  /** Whole number. Number of the publish, to recognise a message that the broker returns. Consumers ignore it. */
  readonly 'redrive-copy': string
}

/** Headers of the broker that RabbitMQ consumers and sources read. They are removed from copies. */
export interface BrokerHeaderTable {
  /** Whole number. Deliveries of a message of a quorum queue without an acknowledgement. */
  readonly 'x-delivery-count': number
  /** List. Dead-lettering of the message by the broker, newest first, with reason, queue, time, count and address. */
  readonly 'x-death': readonly unknown[]
  /** Text. Why the broker first dead-lettered the message. */
  readonly 'x-first-death-reason': string
  /** Text. Queue that the broker first dead-lettered the message from. */
  readonly 'x-first-death-queue': string
}

/** Headers of dead letters of NServiceBus. RabbitMQ sources read them. */
export interface NServiceBusHeaderTable {
  /** Text. Queue of the failed message, as `queue` or `queue@machine`. */
  readonly 'NServiceBus.FailedQ': string
  /** Text. Type of the exception. */
  readonly 'NServiceBus.ExceptionInfo.ExceptionType': string
  /** Text. Message of the exception. */
  readonly 'NServiceBus.ExceptionInfo.Message': string
  /** Text. Stack trace of the exception. */
  readonly 'NServiceBus.ExceptionInfo.StackTrace': string
  /** Time. Time of the failure, as `2026-11-14 23:44:05:123456 Z`. */
  readonly 'NServiceBus.TimeOfFailure': string
  /** Whole number. Delayed retries. */
  readonly 'NServiceBus.Retries': string
  /** Whole number. Immediate retries. */
  readonly 'NServiceBus.FLRetries': string
}

/** Headers of dead letters of MassTransit. RabbitMQ sources read them. */
export interface MassTransitHeaderTable {
  /** Text. Reason, such as `fault` or `dead-letter`. */
  readonly 'MT-Reason': string
  /** Text. Type of the exception. */
  readonly 'MT-Fault-ExceptionType': string
  /** Text. Message of the exception. */
  readonly 'MT-Fault-Message': string
  /** Text. Stack trace of the exception. */
  readonly 'MT-Fault-StackTrace': string
  /** Time. Time of the failure, ISO 8601. */
  readonly 'MT-Fault-Timestamp': string
  /** URL. Address of the consumer, which contains its queue. */
  readonly 'MT-Fault-InputAddress': string
  /** Whole number. Retries before the failure. */
  readonly 'MT-Fault-RetryCount': string
}

/** Headers of dead letters of Spring AMQP (`RepublishMessageRecoverer`). RabbitMQ sources read them. */
export interface SpringAmqpHeaderTable {
  /** Text. Message of the exception. */
  readonly 'x-exception-message': string
  /** Text. Stack trace of the exception. */
  readonly 'x-exception-stacktrace': string
  /** Text. Exchange that the message was published to. */
  readonly 'x-original-exchange': string
  /** Text. Routing key that the message was published with. */
  readonly 'x-original-routingKey': string
}

/** Header of dead letters of rascal. RabbitMQ sources read it. */
export interface RascalHeaderTable {
  /** Table. The error, the queue, the address and the attempts of the message. */
  readonly rascal: unknown
}
