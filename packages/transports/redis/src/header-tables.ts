/**
 * Fields that only consumers of Redis streams add to copies. They are removed from the message that a handler receives.
 *
 * The first sentence of each comment is the format of the value; docs/reference/headers.md prints it.
 */
export interface RedisHeaderTable {
  /** Bytes. The body of a retry, a dead letter or a replay, whatever field the producer used. */
  readonly 'redrive-body': string
  /**
   * JSON: names and values. All headers of a message with more than 1,000 headers, the most that a script can add as
   * fields.
   */
  readonly 'redrive-headers': string
  /** `1`. The dead letter is in quarantine. */
  readonly 'redrive-quarantined': string
}
