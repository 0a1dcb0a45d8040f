import { FAILURE_CLASSES } from '@redrive/core'
import { deadLetterQueue, MemoryBroker, quarantineQueue, send } from '@redrive/memory'
import { type Handler, type Inbox, onEvent } from '@redrive/runtime'
import { type SeededRandom, seededRandom } from '@redrive/testing'
import { checkRun, type Violation } from './check.ts'
import { History } from './history.ts'
import { type MessageBody, QUEUE, SimulatedProcess } from './process.ts'
import { between } from './random.ts'
import { FAULTS_END_MS, type Fault, type PlannedMessage, type Scenario } from './scenario.ts'
import { VirtualTime } from '@redrive/storm'

export interface RunResult {
  readonly violations: readonly Violation[]
  readonly history: History
  readonly steps: number
  /** Steps in which faults can happen. */
  readonly stepsUnderFaults: number
}

/** After the faults: far longer than any backoff, so what is not done by then is stuck. */
const DRAIN_MS = 1_800_000
const RESTART_AFTER_MS = 1_000

class CardDeclined extends Error {
  readonly status = 402
}

function refused(): Error {
  return Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
}

/** Plays one scenario from start to drained, with production code, and checks what came of it. */
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
  readonly #active = new Set<Fault>()
  readonly #handledKeys = new Set<string>()
  readonly #startedAt: number
  #isHealed = false

  constructor(scenario: Scenario) {
    this.#scenario = scenario
    this.#random = seededRandom(scenario.seed ^ 0x5bd1e995)
    this.#time = new VirtualTime(this.#random)
    this.#broker = new MemoryBroker({ clock: this.#time })
    this.#startedAt = this.#time.now()
    this.#history = new History(this.#startedAt)
    this.#messages = new Map(scenario.messages.map((message) => [message.id, message]))
  }

  async play(): Promise<RunResult> {
    const end = onEvent((event) =>
      this.#history.write({ what: 'event', at: this.#time.now(), event }),
    )
    try {
      this.#plan()
      await this.#playUntil(this.#startedAt + FAULTS_END_MS, () => false)
      const stepsUnderFaults = this.#time.steps
      this.#heal()
      const isDrained = await this.#playUntil(this.#time.now() + DRAIN_MS, () => this.#isDrained())
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
    for (const fault of this.#scenario.faults) this.#planFault(fault)
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
        loss: () => this.#strongest('lossyLink', (fault) => fault.probability),
        disrupted: (id, why) =>
          this.#history.write({ what: 'disrupted', at: this.#time.now(), id, why }),
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
    const { inHand } = process
    this.#history.write({ what: 'died', at: this.#time.now(), process: index, handling, inHand })
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

  // ---- what handlers do -----------------------------------------------------------------------

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
      await this.#callDependency(process, planned, runs, context.signal)
      if (!this.#scenario.hasInbox) this.#effect(id, process)
    }
  }

  async #callDependency(
    process: SimulatedProcess,
    planned: PlannedMessage,
    runs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const addMs = this.#strongest('slowDependency', (fault) => fault.addMs)
    const isSlow = planned.kind === 'slow' && runs <= planned.ownFailures
    await process.sleep(planned.workMs + addMs + (isSlow ? 10_000 : 0))
    if (this.#random.chance(this.#strongest('outage', (fault) => fault.share))) throw refused()
    if (planned.kind === 'poison')
      throw new TypeError(`Cannot read properties of undefined (${planned.id})`)
    if (planned.kind === 'business') throw new CardDeclined('declined')
    if (planned.kind === 'flaky' && runs <= planned.ownFailures) throw refused()
    // A handler that heeds its signal ends without effect; one that does not may still take effect.
    if (signal.aborted && this.#random.chance(0.5)) throw signal.reason
    if (signal.aborted) this.#disrupted(planned.id, 'ran on after its timeout')
  }

  #effect(id: string, process: SimulatedProcess): void {
    this.#history.write({ what: 'effect', at: this.#time.now(), id, process: process.index })
  }

  /** Keys and effects live in one database: both are written in one step, or neither is. */
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

  // ---- faults ---------------------------------------------------------------------------------

  #planFault(fault: Fault): void {
    if (fault.kind === 'crashAtStep') return
    this.#time.after(fault.atMs, () => this.#begin(fault))
    if ('lastsMs' in fault) this.#time.after(fault.atMs + fault.lastsMs, () => this.#finish(fault))
  }

  #begin(fault: Exclude<Fault, { kind: 'crashAtStep' }>): void {
    if (this.#isHealed) return
    switch (fault.kind) {
      case 'crash':
        return this.#crash(fault.process)
      case 'redeploy':
        return void this.#redeploy(fault.process)
      case 'brokerRestart':
        this.#fault('broker restarts')
        return this.#broker.restart()
      case 'deadLettersFull':
        this.#fault('dead-letter queues are full')
        return this.#limitDeadLetters(0)
      default:
        this.#fault(`${fault.kind} begins`)
        this.#active.add(fault)
    }
  }

  #finish(fault: Fault): void {
    if (fault.kind === 'deadLettersFull') this.#limitDeadLetters(Number.POSITIVE_INFINITY)
    if (this.#active.delete(fault)) this.#fault(`${fault.kind} ends`)
  }

  #limitDeadLetters(capacity: number): void {
    this.#broker.limitQueue(deadLetterQueue(QUEUE), capacity)
    for (const name of FAILURE_CLASSES)
      this.#broker.limitQueue(quarantineQueue(QUEUE, name), capacity)
  }

  #crashAtSteps(): void {
    for (const fault of this.#scenario.faults) {
      if (fault.kind !== 'crashAtStep' || this.#active.has(fault)) continue
      if (this.#time.steps < fault.step) continue
      this.#active.add(fault)
      this.#crash(fault.process)
    }
  }

  #heal(): void {
    this.#fault('everything heals')
    this.#isHealed = true
    this.#active.clear()
    this.#limitDeadLetters(Number.POSITIVE_INFINITY)
  }

  #strongest<K extends Fault['kind']>(
    kind: K,
    strength: (fault: Extract<Fault, { kind: K }>) => number,
  ): number {
    let most = 0
    for (const fault of this.#active) {
      if (fault.kind === kind) most = Math.max(most, strength(fault as Extract<Fault, { kind: K }>))
    }
    return most
  }

  #fault(text: string): void {
    this.#history.write({ what: 'fault', at: this.#time.now(), text })
  }

  #disrupted(id: string, why: string): void {
    this.#history.write({ what: 'disrupted', at: this.#time.now(), id, why })
  }

  // ---- time -----------------------------------------------------------------------------------

  async #playUntil(until: number, isDone: () => boolean): Promise<boolean> {
    while (await this.#time.step(until)) {
      if (!this.#isHealed) this.#crashAtSteps()
      if (isDone()) return true
    }
    return isDone()
  }

  #isDrained(): boolean {
    return (
      this.#broker.queue(QUEUE).depth === 0 &&
      this.#processes.every((one) => one.isAlive && one.isIdle)
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
