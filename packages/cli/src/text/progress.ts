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
/** The wait for messages that return is redrawn once a second, because nothing else changes. */
const TICK_MS = 1_000
const BAR = 24

/** Final states of an item. */
const SETTLED = [
  'resolved',
  'failed_again',
  'unknown',
  'not_returned',
  'expired',
  'cancelled',
] as const
const WAITING = ['planned', 'queued', 'claimed', 'publishing', 'published'] as const

/** The states of a run that does not publish now. */
const STATES: Readonly<Record<string, string>> = {
  paused: 'Paused',
  done: 'Done',
  cancelled: 'Cancelled',
}

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
  #last: Run | undefined
  /** The number of sent messages, and when it last changed. */
  #sent = { count: -1, at: 0 }
  #timer: NodeJS.Timeout | undefined

  constructor(io: Io) {
    this.#io = io
    this.#page = new Page(io.stderr)
    this.#isBar = io.stderr.isTTY
  }

  show(run: Run): void {
    this.#last = run
    if (this.#isBar) this.#timer ??= setInterval(() => this.#redraw(), TICK_MS).unref()
    const now = this.#io.now()
    const text =
      run.options.proof === 'returns' ? this.#unproven(run, now) : this.#measure(run, now)
    const isDue = now - this.#shownAt >= (this.#isBar ? DRAW_MS : LINE_MS)
    if (!isDue && run.state === this.#shownState) return
    this.#shownAt = now
    this.#shownState = run.state
    if (!this.#isBar) return this.#page.line`${text}`
    // Returns to the start of the line and clears the rest of the previous text.
    this.#io.stderr.write(`\r${this.#page.shown(cutTo(text, this.#io.stderr.columns))}\u001b[K`)
    this.#isDrawn = true
  }

  #redraw(): void {
    if (this.#last !== undefined && this.#isDrawn) this.show(this.#last)
  }

  /** Describes a run whose consumers confirm nothing. */
  #unproven(run: Run, now: number): string {
    const { counts, state, pauseReason, options } = run
    const waiting = counts.queued + counts.claimed + counts.publishing
    const sent = sum(counts, ['published', ...SETTLED]) - counts.cancelled
    if (sent !== this.#sent.count) this.#sent = { count: sent, at: now }
    const left = duration(Math.max(0, options.outcomeTimeoutMs - (now - this.#sent.at)))
    const first = options.canary.reduce((total, size) => total + size, 0)
    const isCanary = sent - counts.published < Math.min(first, sent + waiting)
    const next =
      state !== 'running'
        ? `${STATES[state] ?? state}${state === 'paused' ? `: ${pauseReason ?? ''}` : '.'}`
        : waiting === 0
          ? `Ends within ${left}.`
          : isCanary
            ? `If they do not return, the other ${number(waiting)} follow within ${left}.`
            : `${options.ratePerSecond}/s.`
    return `Sent ${number(sent)} of ${number(sent + waiting)}. ${number(counts.failed_again)} returned. ${next}`
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
      state === 'running' && isInCanary(run, done) && counts.published > 0
        ? `the first ${number(counts.published)} wait for a confirmation`
        : undefined,
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
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

const sum = (counts: Run['counts'], states: readonly (keyof Run['counts'])[]): number =>
  states.reduce((total, state) => total + counts[state], 0)

/** Whether a run still publishes the first messages in small steps. */
const isInCanary = ({ options }: Run, done: number): boolean =>
  done < options.canary.reduce((total, size) => total + size, 0)

function barOf(share: number): string {
  const full = Math.round(share * BAR)
  return `${'█'.repeat(full)}${'░'.repeat(BAR - full)}`
}

/** Cuts the text to one column less than the width. Some terminals wrap a full line. */
const cutTo = (text: string, columns: number): string =>
  text.length < columns ? text : text.slice(0, Math.max(0, columns - 1))
