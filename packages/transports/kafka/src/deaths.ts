import { decodeProgress, Progress } from './progress.ts'

/** Who dies with us if we die now. */
export type AtRisk =
  /** Nobody: we are letting go of the partition. */
  | 'nobody'
  /** Some of the first so many unfinished records: handlers run, and which of them changes all the time. */
  | { readonly amongFirst: number }
  /** Exactly these: nothing more is handed out. */
  | { readonly exactly: readonly number[] }

/**
 * How often a record was in hand when its process died. Kafka does not count that, so each commit says
 * who is at risk; whoever gets the partition next, and finds that nobody let go of it, counts a death
 * for them. A record that kills every process that runs it is found out that way.
 */
export class Deaths {
  /** One for each death: every record below it may have been in hand then. */
  readonly #untils: number[]
  /** Those of whom more is known. */
  readonly #counts: Map<number, number>

  constructor(untils: readonly number[] = [], counts: Iterable<readonly [number, number]> = []) {
    this.#untils = [...untils]
    this.#counts = new Map(counts)
  }

  of(offset: number): number {
    if (this.#untils.length === 0 && this.#counts.size === 0) return 0
    return this.#counts.get(offset) ?? this.#untils.filter((until) => offset < until).length
  }

  /** Someone died who had said who is at risk. */
  count(atRisk: AtRisk, progress: Progress): void {
    if (atRisk === 'nobody') return
    if ('exactly' in atRisk) {
      for (const offset of atRisk.exactly) this.#counts.set(offset, this.of(offset) + 1)
      return
    }
    const until = unfinishedAt(progress, atRisk.amongFirst)
    for (const [offset, count] of this.#counts) {
      if (offset < until) this.#counts.set(offset, count + 1)
    }
    this.#untils.push(until)
    // More say no more: whoever is suspected is suspected by now.
    if (this.#untils.length > REMEMBERED) this.#untils.shift()
  }

  /** As text behind the progress; relative to the mark, because offsets are long. */
  encode(progress: Progress, atRisk: AtRisk): string {
    const { mark } = progress
    const untils = this.#untils.filter((until) => until > mark).map((until) => until - mark)
    const counts = [...this.#counts].filter(([offset]) => offset >= mark && !progress.has(offset))
    // The worst of them, if there are too many.
    counts.sort(([, a], [, b]) => b - a)
    const listed = counts
      .slice(0, COUNTED)
      .map(([offset, count]) => `${offset - mark}:${Math.min(count, 99)}`)
      .join(',')
    const risk = riskText(atRisk, mark)
    const isEmpty = untils.length === 0 && listed === '' && risk === ''
    return isEmpty ? '' : `;${untils.join(',')};${listed};${risk}`
  }
}

function riskText(atRisk: AtRisk, mark: number): string {
  if (atRisk === 'nobody') return ''
  if ('amongFirst' in atRisk) return `~${atRisk.amongFirst}`
  // Too many to name would be too long to commit.
  if (atRisk.exactly.length > NAMED) return `~${atRisk.exactly.length}`
  return atRisk.exactly.map((offset) => `${offset - mark}`).join(',')
}

/** All of it in 900 letters: 30 offsets, 40 counts, 20 deaths. */
const NAMED = 30
const COUNTED = 40
const REMEMBERED = 20

/** One behind the so-manieth unfinished record. */
function unfinishedAt(progress: Progress, count: number): number {
  let left = count
  let offset = progress.mark
  for (; left > 0; offset++) if (!progress.has(offset)) left -= 1
  return offset
}

export interface DecodedCommit {
  readonly progress: Progress
  readonly deaths: Deaths
}

/** What a commit says, as far as it can be read: anyone may commit to a group. */
export function decodeCommit(mark: number, text: string | null): DecodedCommit {
  const [runs = '', untils = '', listed = '', risk = ''] = (text ?? '').split(';')
  const progress = new Progress(mark, decodeProgress(mark, runs))
  const counts = listed.split(',').flatMap((entry): [number, number][] => {
    const [offset, count] = entry.split(':').map(wholeNumber)
    return offset === undefined || count === undefined ? [] : [[mark + offset, count]]
  })
  const deaths = new Deaths(
    numbersIn(untils).map((until) => mark + until),
    counts,
  )
  deaths.count(riskIn(risk, mark), progress)
  return { progress, deaths }
}

function riskIn(text: string, mark: number): AtRisk {
  if (text.startsWith('~')) return { amongFirst: Math.min(wholeNumber(text.slice(1)) ?? 0, MOST) }
  const offsets = numbersIn(text)
  return offsets.length === 0 ? 'nobody' : { exactly: offsets.map((offset) => mark + offset) }
}

/** 10,000: as many as anyone has in hand; a text that says more is not ours. */
const MOST = 10_000

const numbersIn = (text: string): readonly number[] =>
  text.split(',').flatMap((entry) => wholeNumber(entry) ?? [])

const wholeNumber = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : undefined
