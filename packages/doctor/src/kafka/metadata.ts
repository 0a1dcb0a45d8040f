import {
  type Admin,
  type API,
  kGetApi,
  kGetBootstrapConnection,
  type metadataV12,
} from '@platformatic/kafka'
import type { PartitionFacts } from './facts.ts'

export interface Cluster {
  readonly brokers: readonly number[]
  readonly topics: readonly {
    readonly name: string
    readonly isInternal: boolean
    readonly partitions: readonly PartitionFacts[]
  }[]
}

type Request = typeof metadataV12.api
type Arguments = Request extends API<infer Some, unknown> ? Some : never
type Answer = Request extends API<infer _, infer Some> ? Some : never

/** 10,000 topics: a larger response would load the broker too much. */
const MAX_TOPICS = 10_000
const NO_LEADER = -1

/**
 * Returns all topics, including internal ones. `metadata` of the client library omits those, and rejects when a
 * partition has no leader, which is one of the problems to find.
 */
export async function askMetadata(admin: Admin): Promise<Cluster> {
  const api = await new Promise<API<Arguments, Answer>>((resolve, reject) => {
    admin[kGetApi]<Arguments, Answer>('Metadata', (error, found) =>
      found === undefined ? reject(error ?? unanswered()) : resolve(found),
    )
  })
  const connection = await new Promise<Parameters<Request>[0]>((resolve, reject) => {
    admin[kGetBootstrapConnection]((error, found) =>
      found === undefined ? reject(error ?? unanswered()) : resolve(found),
    )
  })
  const answer = await api.async(connection, null, false, false).catch(responseDespiteErrors)
  if (answer.topics.length > MAX_TOPICS) throw new Error(`more than ${MAX_TOPICS} topics`)
  return {
    brokers: answer.brokers.map(({ nodeId }) => nodeId),
    topics: answer.topics.map(({ name, isInternal, partitions }) => ({
      name: name ?? '',
      isInternal,
      partitions: partitions.map(({ leaderId, replicaNodes, isrNodes }) => ({
        leader: leaderId === NO_LEADER ? undefined : leaderId,
        replicas: replicaNodes,
        inSync: isrNodes,
      })),
    })),
  }
}

/** Returns the response of an error, because a response with a failed partition is still usable. */
function responseDespiteErrors(error: unknown): Answer {
  const { response } = error as { readonly response?: Answer }
  if (response?.topics !== undefined) return response
  throw error
}

const unanswered = () => new Error('the client library returned no response')
