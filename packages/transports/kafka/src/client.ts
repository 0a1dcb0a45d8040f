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
  NetworkError,
  type offsetCommitV9,
  type offsetFetchV9,
  type txnOffsetCommitV4,
} from '@platformatic/kafka'

/** Requests that the client library can send, but does not offer as it is needed here. */
interface Requests {
  Fetch: typeof fetchV17.api
  FindCoordinator: typeof findCoordinatorV6.api
  ListOffsets: typeof listOffsetsV9.api
  OffsetCommit: typeof offsetCommitV9.api
  OffsetFetch: typeof offsetFetchV9.api
  TxnOffsetCommit: typeof txnOffsetCommitV4.api
}

type ArgumentsOf<Request> = Request extends API<infer Arguments, unknown> ? Arguments : never
type AnswerOf<Request> = Request extends API<infer _, infer Answer> ? Answer : never

export type Metadata = ClusterMetadata

/** A group's name is looked up, not a transaction's. */
const OF_GROUP = 0
const OF_NOBODY = -1

/** What the client library knows about connections and versions, and single requests over them. */
export class Client {
  readonly base: Base
  readonly #coordinators = new Map<string, number>()

  constructor(options: BaseOptions) {
    this.base = missingNoBroker(new Base(options))
  }

  metadata(topics: readonly string[], isFresh = false): Promise<Metadata> {
    return this.base.metadata({ topics: [...topics], forceUpdate: isFresh })
  }

  async ask<Name extends keyof Requests>(
    name: Name,
    node: number,
    ...args: ArgumentsOf<Requests[Name]>
  ): Promise<AnswerOf<Requests[Name]>> {
    type Request = API<ArgumentsOf<Requests[Name]>, AnswerOf<Requests[Name]>>
    const broker = this.base.currentMetadata?.brokers.get(node)
    if (broker === undefined) throw new Error(`There is no broker ${node} (any more).`)
    const api = await new Promise<Request>((resolve, reject) => {
      this.base[kGetApi]<ArgumentsOf<Requests[Name]>, AnswerOf<Requests[Name]>>(
        name,
        (error, found) => (found === undefined ? reject(orUnknown(error)) : resolve(found)),
      )
    })
    const connection = await new Promise<Parameters<Request>[0]>((resolve, reject) => {
      this.base[kGetConnection](broker, (error, found) =>
        found === undefined ? reject(orUnknown(error)) : resolve(found),
      )
    })
    return api.async(connection, ...args)
  }

  /** The broker that keeps a group's offsets. */
  async coordinatorOf(group: string): Promise<number> {
    const known = this.#coordinators.get(group)
    if (known !== undefined) return known
    const { brokers } = await this.base.metadata({ topics: [] })
    let problem: unknown = new Error('There is no broker to ask for the coordinator.')
    for (const node of brokers.keys()) {
      try {
        const answer = await this.ask('FindCoordinator', node, OF_GROUP, [group])
        const nodeId = answer.coordinators[0]?.nodeId ?? OF_NOBODY
        if (nodeId !== OF_NOBODY) {
          this.#coordinators.set(group, nodeId)
          return nodeId
        }
      } catch (error) {
        problem = error
      }
    }
    throw problem
  }

  /** Something that only stale knowledge explains: it is looked up anew. */
  forget(): void {
    this.#coordinators.clear()
    this.base.clearMetadata()
  }

  close(): Promise<void> {
    return this.base.close()
  }
}

/**
 * A coordinator or leader that died is no longer in the list of brokers, and the client library then
 * throws where nobody can catch it: the process ends. Here it is an error like others: looked up anew.
 */
export function missingNoBroker<C extends Base>(client: C): C {
  const connect = client[kGetConnection].bind(client)
  type Connect = typeof connect
  client[kGetConnection] = (broker: Parameters<Connect>[0] | undefined, callback) => {
    if (broker !== undefined) return connect(broker, callback)
    client.clearMetadata()
    callback(new NetworkError('The broker to ask is not in the cluster (any more).'))
  }
  return client
}

const orUnknown = (error: Error | null) => error ?? new Error('The client library did not answer.')

/** Whether that error of the protocol is among the reasons. */
export const isError = (error: unknown, ...ids: readonly string[]): boolean =>
  error instanceof Error && ids.some((id) => findErrorBy(error, 'apiId', id) !== null)
