/** Why the broker rejected a record without storing it. */
export interface Refusal {
  /** The name of the error in the protocol, and the words of the broker or client. */
  readonly words: string
  readonly isTooLarge: boolean
}

const TOO_LARGE: ReadonlySet<string> = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE'])

/** Errors of the protocol after which nothing is stored, and repeating alone does not help. */
const REFUSALS: ReadonlySet<string> = new Set([
  ...TOO_LARGE,
  'UNKNOWN_TOPIC_OR_PARTITION',
  'INVALID_TOPIC_EXCEPTION',
  'TOPIC_AUTHORIZATION_FAILED',
  'CLUSTER_AUTHORIZATION_FAILED',
  'TRANSACTIONAL_ID_AUTHORIZATION_FAILED',
  'GROUP_AUTHORIZATION_FAILED',
  'POLICY_VIOLATION',
  'INVALID_RECORD',
  'INVALID_TIMESTAMP',
  'UNSUPPORTED_FOR_MESSAGE_FORMAT',
])

/**
 * Returns why the broker rejected a record; undefined when it may be stored. Clients wrap the error of the
 * protocol, in several ways.
 */
export function refusalIn(error: unknown): Refusal | undefined {
  for (const one of withCauses(error)) {
    const name = nameOf(one)
    if (name !== undefined && REFUSALS.has(name))
      return { words: `${name}: ${messageOf(one)}`, isTooLarge: TOO_LARGE.has(name) }
  }
  return undefined
}

/** The fields in which the clients store the name of a protocol error and the errors that they wrap. */
interface ClientError {
  /** In `@platformatic/kafka`. */
  readonly apiId?: unknown
  readonly errors?: unknown
  /** In kafkajs. */
  readonly type?: unknown
  readonly cause?: unknown
}

function* withCauses(error: unknown): Generator<ClientError> {
  if (typeof error !== 'object' || error === null) return
  const one: ClientError = error
  yield one
  const { errors, cause } = one
  for (const inner of Array.isArray(errors) ? errors : []) yield* withCauses(inner)
  yield* withCauses(cause)
}

function nameOf(error: ClientError): string | undefined {
  const { apiId, type } = error
  if (typeof apiId === 'string') return apiId
  if (typeof type === 'string') return type
  // `@platformatic/kafka` reports a missing topic only in the text.
  return messageOf(error).startsWith('Unknown topic') ? 'UNKNOWN_TOPIC_OR_PARTITION' : undefined
}

const messageOf = (error: ClientError): string => (error instanceof Error ? error.message : '')
