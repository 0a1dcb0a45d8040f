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
    this.base = new Base(options)
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

const orUnknown = (error: Error | null) => error ?? new Error('The client library did not answer.')

/** Whether that error of the protocol is among the reasons. */
export const isError = (error: unknown, ...ids: readonly string[]): boolean =>
  error instanceof Error && ids.some((id) => findErrorBy(error, 'apiId', id) !== null)
