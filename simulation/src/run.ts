import { FAILURE_CLASSES } from '@redrive/core'
import { deadLetterQueue, MemoryBroker, quarantineQueue, send } from '@redrive/memory'
import { type Handler, type Inbox, onEvent } from '@redrive/runtime'
import { type SeededRandom, seededRandom } from '@redrive/testing'
import { checkRun } from './check/check.ts'
import type { Violation } from './check/evidence.ts'
import { FaultInjector } from './fault-injector.ts'
import { History, LATE } from './history.ts'
import { type MessageBody, QUEUE, SimulatedProcess } from './process.ts'
import { between } from './random.ts'
import { FAULTS_END_MS, type PlannedMessage, type Scenario } from './scenario.ts'
import { VirtualTime } from '@redrive/storm/internal'

export interface RunResult {
  readonly violations: readonly Violation[]
  readonly history: History
  readonly steps: number
  /** Number of steps in which faults can happen. */
  readonly stepsUnderFaults: number
}

/** Longer than a message is tried when nothing proves the cause of its failures: an hour. */
const UNPROVEN_MS = 70 * 60_000

/**
 * Returns the time after the faults in which everything must end. In order, bad messages of one lane are
 * tried one after the other.
 */
function drainMs({ isOrdered, messages }: Scenario): number {
  const bad = messages.filter(({ kind }) => kind === 'poison')
  const copies = bad.reduce((sum, { isSentTwice }) => sum + (isSentTwice ? 2 : 1), 0)
  return UNPROVEN_MS * (isOrdered ? copies + 1 : 2)
}
const RESTART_AFTER_MS = 1_000

class CardDeclined extends Error {
  readonly status = 402
}

function refused(): Error {
  return Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
}

/**
 * Plays one scenario from the start until it is drained, with production code, and checks the
 * result.
 */
export async function run(scenario: Scenario): Promise<RunResult> {
  const world = new World(scenario)
  return world.play()
}

class World {
  readonly #scenario: Scenario
  readonly #random: SeededRandom
  readonly #time: VirtualTime
  readonly #broker: MemoryBroker
  readonly #history: History
  readonly #processes: SimulatedProcess[] = []
  readonly #runs = new Map<string, number>()
  readonly #messages: ReadonlyMap<string, PlannedMessage>
  readonly #faults: FaultInjector
  readonly #handledKeys = new Set<string>()
  readonly #startedAt: number

  constructor(scenario: Scenario) {
    this.#scenario = scenario
    this.#random = seededRandom(scenario.seed ^ 0x5bd1e995)
    this.#time = new VirtualTime(this.#random)
    this.#broker = new MemoryBroker({ clock: this.#time })
    this.#startedAt = this.#time.now()
    this.#history = new History(this.#startedAt)
    this.#messages = new Map(scenario.messages.map((message) => [message.id, message]))
    this.#faults = new FaultInjector({
      scenario,
      time: this.#time,
      broker: this.#broker,
      crash: (process) => this.#crash(process),
      redeploy: (process) => this.#redeploy(process),
      report: (text) => this.#fault(text),
    })
  }

  async play(): Promise<RunResult> {
    const end = onEvent((event) =>
      this.#history.write({ what: 'event', at: this.#time.now(), event }),
    )
    try {
      this.#plan()
      await this.#playUntil(this.#startedAt + FAULTS_END_MS, () => false)
      const stepsUnderFaults = this.#time.steps
      this.#faults.heal()
      const isDrained = await this.#playUntil(this.#time.now() + drainMs(this.#scenario), () =>
        this.#isDrained(),
      )
      await this.#stopAll()
      const violations = checkRun({
        scenario: this.#scenario,
        facts: this.#history.facts,
        isDrained,
        left: this.#broker.contents(QUEUE),
        deadLetters: this.#broker.contents(deadLetterQueue(QUEUE)),
        quarantined: FAILURE_CLASSES.flatMap((name) =>
          this.#broker.contents(quarantineQueue(QUEUE, name)),
        ),
      })
      return { violations, history: this.#history, steps: this.#time.steps, stepsUnderFaults }
    } finally {
      end()
      this.#broker.close()
    }
  }

  #plan(): void {
    for (let index = 0; index < this.#scenario.processes; index++) this.#startProcess(index)
    for (const message of this.#scenario.messages) {
      this.#time.after(message.atMs, () => this.#send(message))
      if (message.isSentTwice) this.#time.after(message.atMs + 500, () => this.#send(message))
    }
    this.#faults.planAll()
  }

  #send({ id, lane }: PlannedMessage): void {
    this.#history.write({ what: 'sent', at: this.#time.now(), id })
    send(
      this.#broker,
      QUEUE,
      { id },
      { id, headers: { 'x-trace': id }, ...(lane === undefined ? {} : { lane }) },
    )
  }

  // ---- processes ------------------------------------------------------------------------------

  #startProcess(index: number): void {
    const process = new SimulatedProcess({
      index,
      scenario: this.#scenario,
      broker: this.#broker,
      time: this.#time,
      random: this.#random,
      weather: {
        loss: () => this.#faults.strongest('lossyLink', (fault) => fault.probability),
        disrupted: (id, why) =>
          this.#history.write({ what: 'disrupted', at: this.#time.now(), id, why }),
        owned: (id, change) =>
          this.#history.write({
            what: 'owned',
            at: this.#time.now(),
            id,
            process: index,
            change,
          }),
      },
      handler: (self) => this.#handler(self),
      inbox: this.#scenario.hasInbox ? (self) => this.#inbox(self) : undefined,
    })
    this.#processes[index] = process
    this.#history.write({ what: 'started', at: this.#time.now(), process: index })
    process.start()
  }

  #crash(index: number, handling?: string): void {
    const process = this.#processes[index]
    if (process === undefined || !process.isAlive) return
    const { inFlight } = process
    this.#history.write({ what: 'died', at: this.#time.now(), process: index, handling, inFlight })
    process.crash()
    this.#time.after(RESTART_AFTER_MS, () => this.#startProcess(index))
  }

  async #redeploy(index: number): Promise<void> {
    const process = this.#processes[index]
    if (process === undefined || !process.isAlive) return
    this.#fault(`p${index} is redeployed`)
    await process.stop()
    this.#startProcess(index)
  }

  // ---- handlers -------------------------------------------------------------------------------

  #handler(process: SimulatedProcess): Handler<MessageBody, unknown> {
    return async (message, context) => {
      const { id } = message
      const planned = this.#messages.get(id)
      const runs = (this.#runs.get(id) ?? 0) + 1
      this.#runs.set(id, runs)
      this.#history.write({
        what: 'attempt',
        at: this.#time.now(),
        id,
        process: process.index,
        number: context.attempt,
        cycle: context.cycle,
        historyLength: context.history.length,
      })
      if (planned === undefined) return
      if (planned.kind === 'crasher') this.#crash(process.index, id)
      try {
        await this.#callDependency(process, planned, runs, context.signal)
        if (!this.#scenario.hasInbox) this.#effect(id, process)
      } finally {
        this.#history.write({ what: 'ended', at: this.#time.now(), id, process: process.index })
      }
    }
  }

  async #callDependency(
    process: SimulatedProcess,
    planned: PlannedMessage,
    runs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const addMs = this.#faults.strongest('slowDependency', (fault) => fault.addMs)
    const isSlow = planned.kind === 'slow' && runs <= planned.ownFailures
    await process.sleep(planned.workMs + addMs + (isSlow ? 10_000 : 0))
    if (this.#random.chance(this.#faults.strongest('outage', (fault) => fault.share)))
      throw refused()
    if (planned.kind === 'poison')
      throw new TypeError(`Cannot read properties of undefined (${planned.id})`)
    if (planned.kind === 'business') throw new CardDeclined('declined')
    if (planned.kind === 'flaky' && runs <= planned.ownFailures) throw refused()
    // A handler that checks its signal ends without an effect; one that does not may still take
    // effect.
    if (signal.aborted && this.#random.chance(0.5)) throw signal.reason
    if (signal.aborted) this.#disrupted(planned.id, LATE)
  }

  #effect(id: string, process: SimulatedProcess): void {
    this.#history.write({ what: 'effect', at: this.#time.now(), id, process: process.index })
  }

  /** Keys and effects are in one database: both are written in one step, or neither. */
  #inbox(process: SimulatedProcess): Inbox {
    return {
      handle: async ({ key }, work) => {
        if (this.#handledKeys.has(key)) return 'already_handled'
        await work(undefined)
        await process.sleep(between(this.#random, 0, 20))
        if (this.#handledKeys.has(key)) return 'already_handled'
        this.#handledKeys.add(key)
        this.#effect(key, process)
        await process.sleep(between(this.#random, 0, 20))
        return 'handled'
      },
    }
  }

  // ---- history --------------------------------------------------------------------------------

  #fault(text: string): void {
    this.#history.write({ what: 'fault', at: this.#time.now(), text })
  }

  #disrupted(id: string, why: string): void {
    this.#history.write({ what: 'disrupted', at: this.#time.now(), id, why })
  }

  // ---- time -----------------------------------------------------------------------------------

  async #playUntil(until: number, isDone: () => boolean): Promise<boolean> {
    while (await this.#time.step(until)) {
      this.#faults.crashAtSteps()
      if (isDone()) return true
    }
    return isDone()
  }

  #isDrained(): boolean {
    return (
      this.#broker.depth(QUEUE) === 0 && this.#processes.every((one) => one.isAlive && one.isIdle)
    )
  }

  async #stopAll(): Promise<void> {
    let isStopped = false
    void Promise.all(this.#processes.filter((one) => one.isAlive).map((one) => one.stop())).then(
      () => {
        isStopped = true
      },
    )
    await this.#playUntil(this.#time.now() + 60_000, () => isStopped)
  }
}
