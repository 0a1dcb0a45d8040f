import type { Run } from '@redrive/api'
import type { Io } from '../io.ts'
import { Page } from './page.ts'
import { duration, number } from './format.ts'

/** 10 s: short enough to show the current rate, long enough to smooth bursts. */
const WINDOW_MS = 10_000
/** At most one log line per 5 s. */
const LINE_MS = 5_000
/** At most one redraw per 100 ms. Users cannot read faster. */
const DRAW_MS = 100
const BAR = 24

/** Final states of an item. */
const SETTLED = ['resolved', 'failed_again', 'unknown', 'expired', 'cancelled'] as const
const WAITING = ['planned', 'queued', 'claimed', 'publishing', 'published'] as const

interface Sample {
  readonly at: number
  readonly done: number
}

/** The progress of a run on stderr: a bar on a terminal, otherwise a line every few seconds. */
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
    // Returns to the start of the line and clears the rest of the previous text.
    this.#io.stderr.write(`\r${this.#page.shown(cutTo(text, this.#io.stderr.columns))}\u001b[K`)
    this.#isDrawn = true
  }

  #measure(run: Run, now: number): string {
    const { counts, state, pauseReason } = run
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
      counts.failed_again > 0 ? `${number(counts.failed_again)} failed again` : undefined,
      counts.unknown > 0 ? `${number(counts.unknown)} unknown` : undefined,
      state === 'running' ? undefined : state,
      state === 'paused' ? pauseReason : undefined,
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

  /** Ends the bar, so that further output starts on a new line. */
  end(): void {
    if (this.#isDrawn) this.#io.stderr.write('\n')
    this.#isDrawn = false
  }
}

function barOf(share: number): string {
  const full = Math.round(share * BAR)
  return `${'█'.repeat(full)}${'░'.repeat(BAR - full)}`
}

/** Cuts the text to one column less than the width. Some terminals wrap a full line. */
const cutTo = (text: string, columns: number): string =>
  text.length < columns ? text : text.slice(0, Math.max(0, columns - 1))
