/**
 * Headers that only SQS consumers add to copies. They are removed from the message that a handler receives. All headers
 * of Redrive are in one message attribute, `redrive`, as a JSON object, because a message has at most ten attributes.
 *
 * The first sentence of each comment is the format of the value; docs/reference/headers.md prints it.
 */
export interface SqsHeaderTable {
  /** `base64`. Encoding of the body: SQS stores only text. Absent: the body is the text itself. */
  readonly 'redrive-encoding': string
  /** JSON. Attributes of the producer beyond the limit of ten: name, data type and value of each. */
  readonly 'redrive-attributes': string
  /** Whole number. Deliveries of the message without a result before it was returned. Absent: 0. */
  readonly 'redrive-delivery-count': string
  /** `1`. The dead letter is in quarantine. */
  readonly 'redrive-quarantined': string
}

/** Message attributes of producers that SQS consumers read and the SQS sink writes. CloudEvents in binary mode has these names. */
export interface SqsEventHeaderTable {
  /** Text. Content type of the body. */
  readonly 'content-type': string
  /** Text. Type of the event. */
  readonly 'ce-type': string
  /** Time. Time of the event, ISO 8601. Only written. */
  readonly 'ce-time': string
}
