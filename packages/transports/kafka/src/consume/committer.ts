import { type AtRisk, topicText } from './crash-evidence.ts'
import type { OnResult } from '../protocol/fetcher.ts'
import type { Epoch } from '../protocol/membership.ts'
import { type Commit, isFenced, type Offsets } from '../protocol/offsets.ts'
import type { Partition } from './partition.ts'
import { nameOf, type TopicPartition } from '../protocol/topic-partition.ts'
import type { Progress } from './progress.ts'

export interface CommitterDeps {
  readonly offsets: Offsets
  readonly epoch: () => Epoch | undefined
  readonly partitions: () => Iterable<Partition>
  readonly isOurs: (topicPartition: TopicPartition) => boolean
  readonly atRisk: (partition: Partition) => AtRisk
  /** Called when the broker rejects a commit because the group has started a new generation. */
  readonly onFenced: () => void
  readonly onResult: OnResult
}

/** 100 ms: records finished since the last commit are delivered again after a crash. */
const COMMIT_MS = 100

const COORDINATOR = 'the coordinator, for commits'

/** Commits finished records, one commit after the other, only for partitions assigned in this epoch. */
export class Committer {
  readonly #deps: CommitterDeps
  #timer: NodeJS.Timeout | undefined
  /** The last commit. Commits of transactions also wait for it, so that none overwrites a newer one. */
  #last: Promise<void> = Promise.resolve()
  /** The commit that waits for the last one. */
  #next: Promise<void> | undefined
  #isStopped = false

  constructor(deps: CommitterDeps) {
    this.#deps = deps
  }

  /** Schedules a commit after a record was finished. */
  changed(): void {
    if (this.#timer !== undefined || this.#isStopped) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.flushAll()
    }, COMMIT_MS)
  }

  /** Commits all finished records. Callers before the commit starts share it. */
  flushAll(): Promise<void> {
    this.#next ??= this.alone(() => {
      this.#next = undefined
      return this.#commit([...this.#deps.partitions()])
    })
    return this.#next
  }

  /** Commits these partitions after the commit in progress. */
  flush(partitions: readonly Partition[]): Promise<void> {
    return this.alone(() => this.#commit(partitions))
  }

  /** Runs `work` while no other commit runs. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.then(
      () => undefined,
      () => undefined,
    )
    return result
  }

  async #commit(partitions: readonly Partition[]): Promise<void> {
    const epoch = this.#deps.epoch()
    const changed = partitions.filter(
      (partition) => partition.isChanged && this.#deps.isOurs(partition.topicPartition),
    )
    if (epoch === undefined || changed.length === 0 || this.#isStopped) return
    const versions = changed.map(({ version }) => version)
    try {
      const commits = changed.map((partition) =>
        commitOf(partition, partition.progress, this.#deps.atRisk(partition)),
      )
      const missing = await this.#deps.offsets.commit(epoch, commits)
      this.#deps.onResult(COORDINATOR, undefined)
      changed.forEach((partition, index) => {
        partition.isMissing = missing.has(nameOf(partition))
        if (!partition.isMissing) partition.committedVersion = versions[index] as number
      })
      // The topic may exist again soon. Otherwise the next rebalance removes its partitions.
      if (missing.size > 0) this.changed()
    } catch (error) {
      if (!isFenced(error)) this.#deps.onResult(COORDINATOR, error)
      else if (epoch === this.#deps.epoch()) this.#deps.onFenced()
      this.changed()
    }
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }
}

/** Returns the commit of a partition: the finished records, and the records at risk in a crash. */
export function commitOf(
  { topic, partition, deaths, identity }: Partition,
  progress: Progress,
  atRisk: AtRisk,
): Commit {
  const evidence = deaths.encode(progress, atRisk)
  const metadata = `${progress.encode().text}${evidence}${topicText(identity)}`
  return { topic, partition, offset: progress.mark, metadata }
}
