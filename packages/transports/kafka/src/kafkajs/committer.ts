import type { Partition } from '../consume/partition.ts'
import type { KafkaJsConsumer } from './client.ts'

export interface CommitterDeps {
  readonly consumer: KafkaJsConsumer
  readonly partitions: () => Iterable<Partition>
  /** Whether the group is stable; false during a rebalance. */
  readonly isStable: () => boolean
}

/** 100 ms: records finished since the last commit are delivered again after a crash. */
const COMMIT_MS = 100

/** Commits finished records with the consumer of the application, one commit after the other. */
export class Committer {
  readonly #deps: CommitterDeps
  #timer: NodeJS.Timeout | undefined
  #last: Promise<void> = Promise.resolve()
  #isStopped = false

  constructor(deps: CommitterDeps) {
    this.#deps = deps
  }

  /** Schedules a commit after a record was finished. */
  changed(): void {
    if (this.#timer !== undefined || this.#isStopped) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.commit()
    }, COMMIT_MS)
  }

  /**
   * Commits after the previous commit, so that an older one never overwrites a newer one. During a rebalance
   * it commits only if `isLast`. Resolves when the commit is stored, or when it failed.
   */
  commit(isLast = false): Promise<void> {
    this.#last = this.#last.then(() => this.#commitNow(isLast))
    return this.#last
  }

  async #commitNow(isLast: boolean): Promise<void> {
    const { consumer, partitions, isStable } = this.#deps
    const changed = [...partitions()].filter((partition) => partition.isChanged)
    if (changed.length === 0 || !(isStable() || isLast)) return
    const versions = changed.map(({ version }) => version)
    try {
      await consumer.commitOffsets(
        changed.map(({ topic, partition, progress }) => ({
          topic,
          partition,
          offset: String(progress.mark),
          metadata: progress.encode().text,
        })),
      )
      changed.forEach((partition, index) => {
        partition.committedVersion = versions[index] as number
      })
    } catch {
      // Rejected or unanswered: nothing is lost, and the next commit contains the same progress.
      this.changed()
    }
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }
}
