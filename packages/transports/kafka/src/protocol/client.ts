import {
  type API,
  Base,
  type BaseOptions,
  type ClusterMetadata,
  type fetchV17,
  type findCoordinatorV6,
  findErrorBy,
  kGetApi,
  kGetConnection,
  type listOffsetsV9,
  type metadataV12,
  NetworkError,
  type offsetCommitV9,
  type offsetFetchV9,
  type produceV11,
  type txnOffsetCommitV4,
} from '@platformatic/kafka'

/** Requests that the client library can send, but does not offer in its public API. */
interface Requests {
  Fetch: typeof fetchV17.api
  FindCoordinator: typeof findCoordinatorV6.api
  ListOffsets: typeof listOffsetsV9.api
  OffsetCommit: typeof offsetCommitV9.api
  OffsetFetch: typeof offsetFetchV9.api
  Produce: typeof produceV11.api
  TxnOffsetCommit: typeof txnOffsetCommitV4.api
}

type ArgumentsOf<Request> = Request extends API<infer Arguments, unknown> ? Arguments : never
type AnswerOf<Request> = Request extends API<infer _, infer Answer> ? Answer : never

export type Metadata = ClusterMetadata

/** Key type of a coordinator lookup: a group, not a transaction. */
const GROUP_KEY_TYPE = 0
const NO_NODE = -1

/** Sends single requests with the connections and protocol versions of the client library. */
export class Client {
  readonly base: Base
  readonly #coordinators = new Map<string, number>()

  constructor(options: BaseOptions) {
    this.base = listingMissingTopics(missingNoBroker(new Base(options)))
  }

  /** Returns the metadata of topics. Rejects when one of them is missing. */
  async metadata(topics: readonly string[], isFresh = false): Promise<Metadata> {
    const metadata = await this.metadataWithMissing(topics, isFresh)
    const missing = topics.find((topic) => isMissing(metadata, topic))
    if (missing === undefined) return metadata
    this.base.clearMetadata()
    throw unknownTopic(missing)
  }

  /** Returns the metadata of topics; a missing topic has no partitions. */
  metadataWithMissing(topics: readonly string[], isFresh = false): Promise<Metadata> {
    return this.base.metadata({ topics: [...topics], forceUpdate: isFresh })
  }

  async ask<Name extends keyof Requests>(
    name: Name,
    node: number,
    ...args: ArgumentsOf<Requests[Name]>
  ): Promise<AnswerOf<Requests[Name]>> {
    type Request = API<ArgumentsOf<Requests[Name]>, AnswerOf<Requests[Name]>>
    const broker = this.base.currentMetadata?.brokers.get(node)
    if (broker === undefined) throw new Error(`Broker ${node} is not in the cluster metadata.`)
    const api = await new Promise<Request>((resolve, reject) => {
      this.base[kGetApi]<ArgumentsOf<Requests[Name]>, AnswerOf<Requests[Name]>>(
        name,
        (error, found) => (found === undefined ? reject(orNoAnswer(error)) : resolve(found)),
      )
    })
    const connection = await new Promise<Parameters<Request>[0]>((resolve, reject) => {
      this.base[kGetConnection](broker, (error, found) =>
        found === undefined ? reject(orNoAnswer(error)) : resolve(found),
      )
    })
    return api.async(connection, ...args)
  }

  /** Returns the broker that stores the offsets of a group. */
  async coordinatorOf(group: string): Promise<number> {
    const known = this.#coordinators.get(group)
    if (known !== undefined) return known
    const { brokers } = await this.base.metadata({ topics: [] })
    let problem: unknown = new Error('No broker is available to look up the coordinator.')
    for (const node of brokers.keys()) {
      try {
        const answer = await this.ask('FindCoordinator', node, GROUP_KEY_TYPE, [group])
        const nodeId = answer.coordinators[0]?.nodeId ?? NO_NODE
        if (nodeId !== NO_NODE) {
          this.#coordinators.set(group, nodeId)
          return nodeId
        }
      } catch (error) {
        problem = error
      }
    }
    throw problem
  }

  /** Clears cached metadata and coordinators after an error that stale metadata can explain. */
  forget(): void {
    this.#coordinators.clear()
    this.base.clearMetadata()
  }

  close(): Promise<void> {
    return this.base.close()
  }
}

/**
 * Reports a missing broker as a normal error. A crashed coordinator or leader is no longer in the list of
 * brokers. The client library then throws an error that cannot be caught, which ends the process.
 */
export function missingNoBroker<C extends Base>(client: C): C {
  const connect = client[kGetConnection].bind(client)
  type Connect = typeof connect
  client[kGetConnection] = (broker: Parameters<Connect>[0] | undefined, callback) => {
    if (broker !== undefined) return connect(broker, callback)
    client.clearMetadata()
    callback(new NetworkError('The broker is not in the cluster metadata.'))
  }
  return client
}

/**
 * Lists a missing topic as one without partitions. Without this, the client library rejects the metadata of all
 * topics when one is missing. Its error may name another topic, because the broker lists missing topics last.
 */
export function listingMissingTopics<C extends Base>(client: C): C {
  const find = client[kGetApi].bind(client)
  client[kGetApi] = <A extends unknown[], R>(
    name: string,
    callback: (error: Error | null, api?: API<A, R>) => void,
  ) =>
    find<A, R>(name, (error, api) => {
      if (api === undefined || name !== 'Metadata') return callback(error, api)
      callback(null, acceptingMissing(api as unknown as MetadataApi) as unknown as API<A, R>)
    })
  return client
}

type MetadataApi = typeof metadataV12.api
type MetadataAnswer = AnswerOf<MetadataApi>

function acceptingMissing(api: MetadataApi): MetadataApi {
  const request = (
    ...[connection, topics, canCreate, withRights, callback]: Parameters<MetadataApi>
  ) =>
    api(connection, topics, canCreate, withRights, (error, answer) => {
      const partial = (error as { readonly response?: MetadataAnswer } | null)?.response
      if (partial !== undefined && partial.topics.every(isKnownOrMissing)) callback?.(null, partial)
      else callback?.(error, answer)
    })
  return Object.assign(request, { async: api.async, key: api.key, version: api.version })
}

/** The code of a broker for a topic that it does not have. */
export const UNKNOWN_TOPIC = 3

const isKnownOrMissing = ({ errorCode, partitions }: MetadataAnswer['topics'][number]): boolean =>
  errorCode === UNKNOWN_TOPIC ||
  (errorCode === 0 && partitions.every((partition) => partition.errorCode === 0))

/** Returns whether the brokers do not have the topic. Each topic that exists has a partition. */
export const isMissing = ({ topics }: Metadata, topic: string): boolean =>
  (topics.get(topic)?.partitionsCount ?? 0) === 0

const unknownTopic = (topic: string) =>
  Object.assign(new Error(`The topic "${topic}" does not exist.`), {
    apiId: 'UNKNOWN_TOPIC_OR_PARTITION',
  })

const orNoAnswer = (error: Error | null) =>
  error ?? new Error('The client library returned no response.')

/** Returns whether the error or one of its causes is one of these protocol errors. */
export const isError = (error: unknown, ...ids: readonly string[]): boolean =>
  error instanceof Error && ids.some((id) => findErrorBy(error, 'apiId', id) !== null)
