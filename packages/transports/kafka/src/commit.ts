import type { AtRisk } from './deaths.ts'
import type { OnTrouble } from './fetch.ts'
import type { Epoch } from './membership.ts'
import { type Commit, isFenced, type Offsets } from './offsets.ts'
import type { Partition } from './partition.ts'
import type { TopicPartition } from './topic-partition.ts'
import type { Progress } from './progress.ts'

export interface CommitterParts {
  readonly offsets: Offsets
  readonly epoch: () => Epoch | undefined
  readonly partitions: () => Iterable<Partition>
  readonly isOurs: (place: TopicPartition) => boolean
  readonly atRisk: (partition: Partition) => AtRisk
  /** The group has gone on without us, and nobody told us yet. */
  readonly onFenced: () => void
  readonly onTrouble: OnTrouble
}

/** 100 ms: what was finished since is handed out again after a crash. */
const EVERY_MS = 100

const WHERE = 'the coordinator, for commits'

/** Commits what is finished, one commit after the other, only for partitions that are ours in this epoch. */
export class Committer {
  readonly #parts: CommitterParts
  #timer: NodeJS.Timeout | undefined
  /** The last one: commits of transactions take their turn, too, or one could undo the other. */
  #last: Promise<void> = Promise.resolve()
  /** One that waits for its turn. */
  #next: Promise<void> | undefined
  #isStopped = false

  constructor(parts: CommitterParts) {
    this.#parts = parts
  }

  /** Something was finished. */
  changed(): void {
    if (this.#timer !== undefined || this.#isStopped) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.flushAll()
    }, EVERY_MS)
  }

  /** Commits all that is finished by now; one commit for all who ask before it begins. */
  flushAll(): Promise<void> {
    this.#next ??= this.alone(() => {
      this.#next = undefined
      return this.#commit([...this.#parts.partitions()])
    })
    return this.#next
  }

  /** Commits these now, after what is under way. */
  flush(partitions: readonly Partition[]): Promise<void> {
    return this.alone(() => this.#commit(partitions))
  }

  /** No other commit runs at the same time. */
  alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.then(
      () => undefined,
      () => undefined,
    )
    return result
  }

  async #commit(partitions: readonly Partition[]): Promise<void> {
    const epoch = this.#parts.epoch()
    const changed = partitions.filter(
      (partition) => partition.isChanged && this.#parts.isOurs(partition.place),
    )
    if (epoch === undefined || changed.length === 0 || this.#isStopped) return
    const versions = changed.map(({ version }) => version)
    try {
      const commits = changed.map((partition) =>
        commitOf(partition, partition.progress, this.#parts.atRisk(partition)),
      )
      await this.#parts.offsets.commit(epoch, commits)
      this.#parts.onTrouble(WHERE, undefined)
      changed.forEach((partition, index) => {
        partition.committedVersion = versions[index] as number
      })
    } catch (error) {
      if (!isFenced(error)) this.#parts.onTrouble(WHERE, error)
      else if (epoch === this.#parts.epoch()) this.#parts.onFenced()
      this.changed()
    }
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }
}

/** What is finished, and who is at risk. */
export function commitOf(
  { topic, partition, deaths }: Partition,
  progress: Progress,
  atRisk: AtRisk,
): Commit {
  const metadata = `${progress.encode().text}${deaths.encode(progress, atRisk)}`
  return { topic, partition, offset: progress.mark, metadata }
}
