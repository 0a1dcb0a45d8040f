import { RedriveError } from '@redrive/core'
import type { Topology } from './topology.ts'

/** The longest name of a topic that brokers accept. */
const MAX_NAME = 249

/** Rejects names that brokers do not accept, before any topic is created. */
export function refuseLongNames({ topic, group, retries, deadLetters, replayed }: Topology): void {
  const names = [...retries, deadLetters, replayed].map(({ name }) => name)
  const problems = names
    .filter((name) => name.length > MAX_NAME)
    .map((name) => `"${name}" has ${name.length} characters.`)
  if (problems.length === 0) return
  throw new RedriveError(
    'TOPOLOGY_MISMATCH',
    `Kafka allows ${MAX_NAME} characters in the name of a topic. These names, which contain the topic "${topic}" and the group "${group}", are longer. Use a shorter group:\n- ${problems.join('\n- ')}`,
    { problems },
  )
}

/** The fields in which the clients report why the broker did not create a topic. */
interface ClientError {
  /** Property in `@platformatic/kafka`. */
  readonly errors?: readonly unknown[]
  readonly response?: { readonly topics?: readonly Named[]; readonly results?: readonly Named[] }
  readonly apiId?: string
  readonly serverErrorMessage?: string | null
  readonly path?: string
  /** Property in kafkajs. */
  readonly topic?: string
  readonly type?: string
  /** Whether kafkajs would repeat the request: the topic may exist soon. */
  readonly retriable?: boolean
}

interface Named {
  readonly name: string
}

/** Returns the words of the broker for each topic, by name, except for topics that another consumer created first. */
export function creationProblems(error: unknown): ReadonlyMap<string, string> {
  if (!(error instanceof Error)) return new Map()
  const { errors = [], response, topic, type, retriable } = error as ClientError
  if (retriable === true) return new Map()
  if (topic !== undefined && type !== undefined) return oneProblem(topic, type, error.message)
  const answers = response?.topics ?? response?.results
  if (answers === undefined) return new Map(errors.flatMap((one) => [...creationProblems(one)]))
  return new Map(
    (errors as readonly (Error & ClientError)[]).flatMap((one) => {
      const index = Number(one.path?.split('/').at(-1))
      const words = one.serverErrorMessage ?? one.message
      return [...oneProblem(answers[index]?.name ?? '', one.apiId ?? '', words)]
    }),
  )
}

const oneProblem = (topic: string, id: string, words: string): ReadonlyMap<string, string> =>
  id === 'TOPIC_ALREADY_EXISTS' ? new Map() : new Map([[topic, `${id}: ${words}`]])

/** Returns the error with the words of the broker for each topic; the first error when none names a topic. */
export function notCreated(topic: string, error: unknown): unknown {
  const problems = [...creationProblems(error)].map(([name, words]) => `"${name}": ${words}`)
  if (problems.length === 0)
    return error instanceof AggregateError ? (error.errors as readonly unknown[])[0] : error
  return new RedriveError(
    'TOPOLOGY_MISMATCH',
    `Kafka did not create the retry and dead-letter topics of "${topic}". Correct the cause, or create the topics yourself:\n- ${problems.join('\n- ')}`,
    { problems, cause: error },
  )
}
