import type { Run } from '@redrive/api'
import type { Io } from '../io.ts'
import { Page } from './page.ts'
import { duration, number } from './words.ts'

/** 10 s: the rate of now, and still calm when messages come in bursts. */
const WINDOW_MS = 10_000
/** 5 s between two lines in a log. */
const LINE_MS = 5_000
/** 100 ms between two drawings: more than anyone can read. */
const DRAW_MS = 100
const BAR = 24

/** States in which nothing more happens to an item of a run. */
const SETTLED = ['resolved', 'refailed', 'unknown', 'expired', 'cancelled'] as const
const WAITING = ['planned', 'queued', 'claimed', 'publishing', 'published'] as const

interface Sample {
  readonly at: number
  readonly done: number
}

/** How far a run is, on stderr: a bar on a terminal, else a line from time to time. */
export class Progress {
  readonly #io: Io
  readonly #page: Page
  readonly #isBar: boolean
  #samples: Sample[] = []
  #shownAt = Number.NEGATIVE_INFINITY
  #shownState: string | undefined
  #isDrawn = false

  constructor(io: Io) {
    this.#io = io
    this.#page = new Page(io.stderr)
    this.#isBar = io.stderr.isTTY
  }

  show(run: Run): void {
    const now = this.#io.now()
    const text = this.#measure(run, now)
    const isDue = now - this.#shownAt >= (this.#isBar ? DRAW_MS : LINE_MS)
    if (!isDue && run.state === this.#shownState) return
    this.#shownAt = now
    this.#shownState = run.state
    if (!this.#isBar) return this.#page.line`${text}`
    // Back to the beginning of the line, and clear what is left of the one before.
    this.#io.stderr.write(`\r${this.#page.shown(cutTo(text, this.#io.stderr.columns))}\u001b[K`)
    this.#isDrawn = true
  }

  #measure(run: Run, now: number): string {
    const { counts, state, pausedBecause } = run
    const done = SETTLED.reduce((sum, one) => sum + counts[one], 0)
    const total = done + WAITING.reduce((sum, one) => sum + counts[one], 0)
    this.#samples = [...this.#samples.filter(({ at }) => now - at <= WINDOW_MS), { at: now, done }]
    const [first] = this.#samples
    const seconds = (now - (first?.at ?? now)) / 1_000
    const rate = seconds > 0 ? (done - (first?.done ?? 0)) / seconds : 0
    const share = total === 0 ? 1 : done / total
    const parts = [
      this.#isBar ? barOf(share) : undefined,
      `${Math.floor(share * 100)} %`,
      `${number(done)} of ${number(total)}`,
      counts.refailed > 0 ? `${number(counts.refailed)} refailed` : undefined,
      counts.unknown > 0 ? `${number(counts.unknown)} unknown` : undefined,
      state === 'running' ? undefined : state,
      state === 'paused' ? pausedBecause : undefined,
      state === 'running' ? `${rate.toFixed(rate < 10 ? 1 : 0)}/s` : undefined,
      state === 'running' && rate > 0 && done < total
        ? `${duration(((total - done) / rate) * 1_000)} left`
        : undefined,
    ]
    return parts.filter((part) => part !== undefined).join('  ')
  }

  note(text: string): void {
    this.end()
    this.#page.line`${text}`
  }

  /** What comes next begins on a line of its own. */
  end(): void {
    if (this.#isDrawn) this.#io.stderr.write('\n')
    this.#isDrawn = false
  }
}

function barOf(share: number): string {
  const full = Math.round(share * BAR)
  return `${'█'.repeat(full)}${'░'.repeat(BAR - full)}`
}

/** One column less than there are: the last one would break the line on some terminals. */
const cutTo = (text: string, columns: number): string =>
  text.length < columns ? text : text.slice(0, Math.max(0, columns - 1))
