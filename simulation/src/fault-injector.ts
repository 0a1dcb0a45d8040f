import { FAILURE_CLASSES } from '@redrive/core'
import { deadLetterQueue, type MemoryBroker, quarantineQueue } from '@redrive/memory'
import type { VirtualTime } from '@redrive/storm/internal'
import { QUEUE } from './process.ts'
import type { Fault, Scenario } from './scenario.ts'

export interface FaultInjectorDeps {
  readonly scenario: Scenario
  readonly time: VirtualTime
  readonly broker: MemoryBroker
  readonly crash: (process: number) => void
  readonly redeploy: (process: number) => Promise<void>
  /** Writes a line of the history. */
  readonly report: (text: string) => void
}

/** Begins and ends the faults of a scenario at their times. */
export class FaultInjector {
  readonly #deps: FaultInjectorDeps
  readonly #active = new Set<Fault>()
  #isHealed = false

  constructor(deps: FaultInjectorDeps) {
    this.#deps = deps
  }

  planAll(): void {
    for (const fault of this.#deps.scenario.faults) this.#plan(fault)
  }

  #plan(fault: Fault): void {
    if (fault.kind === 'crashAtStep') return
    this.#deps.time.after(fault.atMs, () => this.#begin(fault))
    if ('lastsMs' in fault)
      this.#deps.time.after(fault.atMs + fault.lastsMs, () => this.#finish(fault))
  }

  #begin(fault: Exclude<Fault, { kind: 'crashAtStep' }>): void {
    if (this.#isHealed) return
    switch (fault.kind) {
      case 'crash':
        return this.#deps.crash(fault.process)
      case 'redeploy':
        return void this.#deps.redeploy(fault.process)
      case 'brokerRestart':
        this.#deps.report('broker restarts')
        return this.#deps.broker.restart()
      case 'deadLettersFull':
        this.#deps.report('dead-letter queues are full')
        return this.#limitDeadLetters(0)
      default:
        this.#deps.report(`${fault.kind} begins`)
        this.#active.add(fault)
    }
  }

  #finish(fault: Fault): void {
    if (fault.kind === 'deadLettersFull') this.#limitDeadLetters(Number.POSITIVE_INFINITY)
    if (this.#active.delete(fault)) this.#deps.report(`${fault.kind} ends`)
  }

  #limitDeadLetters(capacity: number): void {
    this.#deps.broker.limitQueue(deadLetterQueue(QUEUE), capacity)
    for (const name of FAILURE_CLASSES)
      this.#deps.broker.limitQueue(quarantineQueue(QUEUE, name), capacity)
  }

  /** Crashes the processes whose step has come. */
  crashAtSteps(): void {
    if (this.#isHealed) return
    for (const fault of this.#deps.scenario.faults) {
      if (fault.kind !== 'crashAtStep' || this.#active.has(fault)) continue
      if (this.#deps.time.steps < fault.step) continue
      this.#active.add(fault)
      this.#deps.crash(fault.process)
    }
  }

  /** Ends all faults. No other fault begins. */
  heal(): void {
    this.#deps.report('everything heals')
    this.#isHealed = true
    this.#active.clear()
    this.#limitDeadLetters(Number.POSITIVE_INFINITY)
  }

  /** Returns the greatest strength of the active faults of this kind; 0 without one. */
  strongest<K extends Fault['kind']>(
    kind: K,
    strength: (fault: Extract<Fault, { kind: K }>) => number,
  ): number {
    let most = 0
    for (const fault of this.#active) {
      if (fault.kind === kind) most = Math.max(most, strength(fault as Extract<Fault, { kind: K }>))
    }
    return most
  }
}
