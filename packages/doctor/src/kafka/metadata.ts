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

/** 10,000 topics: more are a fleet; an answer of that size takes a broker's breath. */
const MOST_TOPICS = 10_000
const NOBODY = -1

/**
 * All topics, internal ones too. The client library's own `metadata` leaves those out, and rejects when
 * a partition has no leader, which is one of the things to find.
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
  const answer = await api.async(connection, null, false, false).catch(despiteErrors)
  if (answer.topics.length > MOST_TOPICS) throw new Error(`more than ${MOST_TOPICS} topics`)
  return {
    brokers: answer.brokers.map(({ nodeId }) => nodeId),
    topics: answer.topics.map(({ name, isInternal, partitions }) => ({
      name: name ?? '',
      isInternal,
      partitions: partitions.map(({ leaderId, replicaNodes, isrNodes }) => ({
        leader: leaderId === NOBODY ? undefined : leaderId,
        replicas: replicaNodes,
        inSync: isrNodes,
      })),
    })),
  }
}

/** An answer in which one partition is in trouble is an answer all the same. */
function despiteErrors(error: unknown): Answer {
  const { response } = error as { readonly response?: Answer }
  if (response?.topics !== undefined) return response
  throw error
}

const unanswered = () => new Error('the client library did not answer')
