import type { Puller, PullResult } from './pull.ts'

/** 500 ms: an idle consumer requests new messages twice per second, and a pause waits no longer. */
const WAIT_MS = 500
/** 250 ms: with one slot, retries wait no longer behind a request for new messages. */
const SHORT_WAIT_MS = 250
/** 250 ms between two looks for retries: the server publishes due ones as often. */
const LOOK_MS = 250
/** 1 s before the next request after a problem: the stream has no leader, or the consumer is missing. */
const PROBLEM_MS = 1_000
/** 2 ms: settled messages are replaced together. One request for each would cost more than the message. */
const GATHER_MS = 2

export interface IntakeOptions {
  /** New messages of the stream. */
  readonly fresh: Puller
  /** Copies that are due: retries, returned messages, replays. */
  readonly retries: Puller
  /** Returns the number of unsettled deliveries. */
  readonly inFlight: () => number
  readonly onProblem: (error: Error | undefined) => void
}

/** Requests as many messages as may be in flight, from two streams that share one limit. */
export class Intake {
  readonly #options: IntakeOptions
  #limit = 0
  #isOpen = false
  /** When to look for retries next. */
  #lookAt = 0
  #lookTimer: NodeJS.Timeout | undefined
  #gatherTimer: NodeJS.Timeout | undefined
  #freshAt = 0
  #isFreshIdle = false
  #areRetriesIdle = true
  readonly #reading = new Set<Promise<void>>()

  constructor(options: IntakeOptions) {
    this.#options = options
  }

  setLimit(count: number): void {
    this.#limit = count
    this.fill()
  }

  start(): void {
    this.#isOpen = true
    this.#lookAt = 0
    this.fill()
  }

  /** Stops requests. Resolves when the open ones have ended: no message arrives afterwards. */
  async stop(): Promise<void> {
    this.#isOpen = false
    clearTimeout(this.#lookTimer)
    clearTimeout(this.#gatherTimer)
    this.#lookTimer = undefined
    this.#gatherTimer = undefined
    await Promise.all(this.#reading)
  }

  /** Looks for retries when one is due. */
  lookIn(delayMs: number): void {
    const at = performance.now() + delayMs
    if (at < this.#lookAt) {
      this.#lookAt = at
      this.#lookLater()
    }
  }

  /** Requests messages for the free slots. */
  fill(): void {
    if (!this.#isOpen) return
    const now = performance.now()
    if (now >= this.#lookAt) this.#look()
    else this.#lookLater()
    const { fresh, inFlight } = this.#options
    const room = this.#room()
    if (fresh.isOpen || room <= 0 || now < this.#freshAt) return
    if (room < this.#limit / 2 && inFlight() > 0) this.#gather()
    else this.#pullFresh(room)
  }

  #room(): number {
    const { fresh, retries, inFlight } = this.#options
    return this.#limit - inFlight() - fresh.expected - retries.expected
  }

  #look(): void {
    const { retries } = this.#options
    const room = this.#room()
    if (retries.isOpen || room <= 0) return
    // Not the whole limit while there are none: new messages would wait for the answer.
    const batch = this.#areRetriesIdle ? Math.min(room, Math.ceil(this.#limit / 4)) : room
    this.#read(retries.pull({ batch, waitMs: 0 }), ({ count, problem }) => {
      this.#areRetriesIdle = count === 0
      const nextMs = problem === undefined ? (count === 0 ? LOOK_MS : 0) : PROBLEM_MS
      this.#lookAt = performance.now() + nextMs
    })
  }

  #pullFresh(room: number): void {
    clearTimeout(this.#gatherTimer)
    this.#gatherTimer = undefined
    // While no message arrives, the other half stays free for retries.
    const batch = this.#isFreshIdle ? Math.min(room, Math.ceil(this.#limit / 2)) : room
    const waitMs = this.#limit === 1 ? SHORT_WAIT_MS : WAIT_MS
    this.#read(this.#options.fresh.pull({ batch, waitMs }), ({ count, problem }) => {
      this.#isFreshIdle = count === 0
      if (problem === undefined) return
      this.#freshAt = performance.now() + PROBLEM_MS
      this.#lookLater(PROBLEM_MS)
    })
  }

  #read(pulling: Promise<PullResult>, then: (result: PullResult) => void): void {
    const reading = pulling.then((result) => {
      this.#reading.delete(reading)
      then(result)
      if (this.#isOpen) this.#options.onProblem(result.problem)
      this.fill()
    })
    this.#reading.add(reading)
  }

  #gather(): void {
    this.#gatherTimer ??= setTimeout(() => {
      this.#gatherTimer = undefined
      const room = this.#room()
      if (this.#isOpen && room > 0 && !this.#options.fresh.isOpen) this.#pullFresh(room)
    }, GATHER_MS)
  }

  #lookLater(delayMs = this.#lookAt - performance.now()): void {
    clearTimeout(this.#lookTimer)
    this.#lookTimer = setTimeout(() => this.fill(), Math.max(1, delayMs))
  }
}
