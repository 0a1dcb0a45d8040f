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
 * Returns why the broker rejected a record; undefined when it may be stored. A client that tried several times
 * reports all errors: any error that is not a refusal leaves the outcome open.
 */
export function refusalIn(error: unknown): Refusal | undefined {
  const problems = problemsIn(error)
  const [first] = problems
  if (first === undefined || problems.some(({ name }) => !REFUSALS.has(name))) return undefined
  const isTooLarge = problems.some(({ name }) => TOO_LARGE.has(name))
  return { words: `${first.name}: ${first.message}`, isTooLarge }
}

/** Returns whether one of the records of a request was rejected. The others may be stored. */
export const hasRefusal = (error: unknown): boolean =>
  problemsIn(error).some(({ name }) => REFUSALS.has(name))

interface Problem {
  /** The name in the protocol; empty for other errors. */
  readonly name: string
  readonly message: string
}

/** The fields in which the clients store the name of a protocol error and the errors that they wrap. */
interface ClientError {
  /** Property in `@platformatic/kafka`. */
  readonly apiId?: unknown
  readonly errors?: unknown
  /** Property in kafkajs and the Confluent client. */
  readonly type?: unknown
  readonly cause?: unknown
}

/** Returns the errors that caused this one. */
function problemsIn(error: unknown): readonly Problem[] {
  if (typeof error !== 'object' || error === null) return []
  const { errors, cause } = error as ClientError
  const message = error instanceof Error ? error.message : ''
  const name = nameOf(error, message)
  const inner = [...(Array.isArray(errors) ? (errors as unknown[]) : []), cause]
  const problems = name === '' ? inner.flatMap(problemsIn) : []
  return problems.length > 0 ? problems : [{ name, message }]
}

function nameOf({ apiId, type }: ClientError, message: string): string {
  if (typeof apiId === 'string') return apiId
  if (typeof type === 'string') return LIBRDKAFKA_NAMES[type] ?? type.replace(/^ERR_/, '')
  // `@platformatic/kafka` reports a missing topic only in the text.
  return message.startsWith('Unknown topic') ? 'UNKNOWN_TOPIC_OR_PARTITION' : ''
}

/** Names in the Confluent client that differ from those of the protocol by more than the prefix. */
const LIBRDKAFKA_NAMES: Readonly<Record<string, string>> = {
  ERR_MSG_SIZE_TOO_LARGE: 'MESSAGE_TOO_LARGE',
  ERR_UNKNOWN_TOPIC_OR_PART: 'UNKNOWN_TOPIC_OR_PARTITION',
  ERR_TOPIC_EXCEPTION: 'INVALID_TOPIC_EXCEPTION',
}
