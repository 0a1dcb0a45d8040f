import type { SqsDelivery } from './delivery.ts'

/** The received messages of each message group. Only the first one of a group runs; the others wait in this process. */
export class Lanes {
  readonly #lanes = new Map<string, SqsDelivery[]>()

  /** Adds a message at the end of its group. Returns whether it is the first, which runs now. */
  add(delivery: SqsDelivery): boolean {
    const { lane } = delivery
    if (lane === undefined) return true
    const others = this.#lanes.get(lane)
    if (others === undefined) this.#lanes.set(lane, [delivery])
    else others.push(delivery)
    return others === undefined
  }

  /** Removes a finished message. Returns the next message to run. */
  finish(delivery: SqsDelivery): SqsDelivery | undefined {
    const all = this.#lanes.get(delivery.lane ?? '')
    if (all?.[0] !== delivery) return undefined
    all.shift()
    if (all.length === 0) this.#lanes.delete(delivery.lane ?? '')
    return all[0]
  }

  /** Removes a lost message. Returns the waiting messages of its group, removed: SQS delivers them in order. */
  lose(delivery: SqsDelivery): readonly SqsDelivery[] {
    const { lane = '' } = delivery
    const [first, ...waiting] = this.#lanes.get(lane) ?? []
    if (first === undefined) return []
    if (first === delivery) this.#lanes.delete(lane)
    else this.#lanes.set(lane, [first])
    return waiting.filter((one) => one !== delivery)
  }

  /** Removes and returns all messages that wait. */
  stop(): readonly SqsDelivery[] {
    return [...this.#lanes.values()].flatMap((all) => all.splice(1))
  }
}
