import { decodeProgress, Progress } from './progress.ts'

/** The records that a crash of this process would affect now. */
export type AtRisk =
  /** No record: the partition is being released. */
  | 'none'
  /** Some of the first `amongFirst` unfinished records. Handlers run, and the set changes all the time. */
  | { readonly amongFirst: number }
  /** Exactly these offsets: no further record is delivered. */
  | { readonly exactly: readonly number[] }

/**
 * Counts how often a record was in flight when its process crashed. Kafka does not count this, so each
 * commit lists the records at risk. If the partition was not released, its next owner counts a crash for
 * them. This detects a record that crashes every process that runs it.
 */
export class CrashEvidence {
  /** One offset per crash: every record below it may have been in flight then. */
  readonly #upperBounds: number[]
  /** Crash counts of records for which the exact number is known. */
  readonly #counts: Map<number, number>

  constructor(
    upperBounds: readonly number[] = [],
    counts: Iterable<readonly [number, number]> = [],
  ) {
    this.#upperBounds = [...upperBounds]
    this.#counts = new Map(counts)
  }

  of(offset: number): number {
    if (this.#upperBounds.length === 0 && this.#counts.size === 0) return 0
    return (
      this.#counts.get(offset) ??
      this.#upperBounds.filter((upperBound) => offset < upperBound).length
    )
  }

  /** Counts a crash of a process that had committed these records at risk. */
  count(atRisk: AtRisk, progress: Progress): void {
    if (atRisk === 'none') return
    if ('exactly' in atRisk) {
      for (const offset of atRisk.exactly) this.#counts.set(offset, this.of(offset) + 1)
      return
    }
    const upperBound = boundOfUnfinished(progress, atRisk.amongFirst)
    for (const [offset, count] of this.#counts) {
      if (offset < upperBound) this.#counts.set(offset, count + 1)
    }
    this.#upperBounds.push(upperBound)
    // More entries add no information: every suspected record is suspected by now.
    if (this.#upperBounds.length > MAX_CRASHES) this.#upperBounds.shift()
  }

  /** Returns the text that follows the progress. Offsets are relative to the committed offset, to keep it short. */
  encode(progress: Progress, atRisk: AtRisk): string {
    const { mark } = progress
    const upperBounds = this.#upperBounds
      .filter((upperBound) => upperBound > mark)
      .map((upperBound) => upperBound - mark)
    const counts = [...this.#counts].filter(([offset]) => offset >= mark && !progress.has(offset))
    // The highest counts first, because only MAX_COUNTS of them fit.
    counts.sort(([, a], [, b]) => b - a)
    const listed = counts
      .slice(0, MAX_COUNTS)
      .map(([offset, count]) => `${offset - mark}:${Math.min(count, 99)}`)
      .join(',')
    const risk = riskText(atRisk, mark)
    return `;${upperBounds.join(',')};${listed};${risk}`
  }
}

function riskText(atRisk: AtRisk, mark: number): string {
  if (atRisk === 'none') return ''
  if ('amongFirst' in atRisk) return `~${atRisk.amongFirst}`
  // A longer list would not fit into the commit.
  if (atRisk.exactly.length > MAX_LISTED) return `~${atRisk.exactly.length}`
  return atRisk.exactly.map((offset) => `${offset - mark}`).join(',')
}

/** Together at most 900 characters: 30 offsets, 40 counts, 20 crashes. */
const MAX_LISTED = 30
const MAX_COUNTS = 40
const MAX_CRASHES = 20

/** Returns the offset after the first `count` unfinished records. */
function boundOfUnfinished(progress: Progress, count: number): number {
  let left = count
  let offset = progress.mark
  for (; left > 0; offset++) if (!progress.has(offset)) left -= 1
  return offset
}

export interface DecodedCommit {
  readonly progress: Progress
  readonly deaths: CrashEvidence
}

/** Decodes the metadata of a commit. Unreadable parts are ignored, because any client can commit to a group. */
export function decodeCommit(mark: number, text: string | null): DecodedCommit {
  const [runs = '', upperBounds = '', listed = '', risk = ''] = partsOf(text)
  const progress = new Progress(mark, decodeProgress(mark, runs))
  const counts = listed.split(',').flatMap((entry): [number, number][] => {
    const [offset, count] = entry.split(':').map(wholeNumber)
    return offset === undefined || count === undefined ? [] : [[mark + offset, count]]
  })
  const deaths = new CrashEvidence(
    numbersIn(upperBounds).map((upperBound) => mark + upperBound),
    counts,
  )
  deaths.count(riskIn(risk, mark), progress)
  return { progress, deaths }
}

const partsOf = (text: string | null) => (text ?? '').split(';')

/** A topic at the time of a commit. */
export interface TopicIdentity {
  /** A topic that is deleted and created again has another id. */
  readonly id: string
  readonly partitions: number
}

/** Returns the topic that the offset of a commit belongs to. Commits of other clients do not name it. */
export function topicIn(text: string | null): TopicIdentity | undefined {
  const [id = '', partitions] = partsOf(text).slice(4)
  return id === '' ? undefined : { id, partitions: wholeNumber(partitions) ?? 0 }
}

/** Returns the text of a topic for a commit. */
export const topicText = (topic: TopicIdentity | undefined): string =>
  topic === undefined ? ';' : `;${topic.id};${topic.partitions}`

/** Returns whether the commit belongs to an earlier topic of the same name. Its offset then means nothing. */
export function isOfEarlierTopic(text: string | null, topicId: string | undefined): boolean {
  const committedId = topicIn(text)?.id
  return committedId !== undefined && topicId !== undefined && committedId !== topicId
}

function riskIn(text: string, mark: number): AtRisk {
  if (text.startsWith('~'))
    return { amongFirst: Math.min(wholeNumber(text.slice(1)) ?? 0, MAX_AT_RISK) }
  const offsets = numbersIn(text)
  return offsets.length === 0 ? 'none' : { exactly: offsets.map((offset) => mark + offset) }
}

/** 10,000: more records than a consumer has in flight. Redrive did not write a text with a higher number. */
const MAX_AT_RISK = 10_000

const numbersIn = (text: string): readonly number[] =>
  text.split(',').flatMap((entry) => wholeNumber(entry) ?? [])

const wholeNumber = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined
