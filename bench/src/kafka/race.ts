// One partition with one record that always fails: which consumers get past it, and what happens to
// the record.
import { onEvent } from '@redrive/runtime'
import { setTimeout as sleep } from 'node:timers/promises'
import { Broker, brokers, deadLettersOf, type Names, ownNames, type RecordOf } from './broker.ts'

const BODY = Buffer.alloc(200, 'x')
const POLL_MS = 10

export interface Course {
  readonly records: number
  /** Number of the poison record; undefined when all are good. */
  readonly poison: number | undefined
}

/** Everything that a consumer needs. */
export interface Lane extends Names {
  readonly hosts: readonly string[]
  /** Handles the record with that number, which is its key; throws for the poison record. */
  readonly handle: (number: number) => void
}

export interface Racer {
  readonly name: string
  /**
   * Whether its events report the end of the poison record. For others the committed offset shows
   * it.
   */
  readonly reportsTheEnd?: true
  /** Consumes with the defaults of its library; returns a function to stop it. */
  readonly start: (lane: Lane) => Promise<{ readonly group: string; stop(): Promise<void> }>
}

export interface Result {
  readonly name: string
  /** Number of other records that were handled. */
  readonly others: number
  /** Number of calls with records that were already handled. */
  readonly repeated: number
  /** Time from the first call to the last record that was handled for the first time. */
  readonly seconds: number
  readonly perSecondBefore: number | undefined
  readonly perSecondAfter: number | undefined
  readonly poisonAttempts: number
  readonly deadLetters: number
  /** Redrive's decision about the poison record. */
  readonly became: 'deadLetter' | 'quarantine' | undefined
  /** The committed offset of the group at the end. */
  readonly committed: number
}

/** Records which numbers were handled, and when. */
class Watch {
  readonly #course: Course
  readonly #isHandled: Uint8Array
  others = 0
  repeated = 0
  poisonAttempts = 0
  othersBefore = 0
  #firstAt: number | undefined
  #poisonAt: number | undefined
  #lastAt = 0

  constructor(course: Course) {
    this.#course = course
    this.#isHandled = new Uint8Array(course.records)
  }

  handle(number: number): void {
    const now = performance.now()
    this.#firstAt ??= now
    if (number === this.#course.poison) {
      this.#poisonAt ??= now
      if (this.poisonAttempts === 0) this.othersBefore = this.others
      this.poisonAttempts += 1
      throw new Error('poison')
    }
    if (this.#isHandled[number] === 1) {
      this.repeated += 1
      return
    }
    this.#isHandled[number] = 1
    this.others += 1
    this.#lastAt = now
  }

  get isComplete(): boolean {
    return this.others === this.#course.records - (this.#course.poison === undefined ? 0 : 1)
  }

  get beganAt(): number | undefined {
    return this.#firstAt
  }

  get seconds(): number {
    return (this.#lastAt - (this.#firstAt ?? 0)) / 1_000
  }

  /** Returns rates up to the last handled record, or up to the end when some were not handled. */
  rates(endedAt: number): readonly [before: number | undefined, after: number | undefined] {
    const first = this.#firstAt ?? endedAt
    const last = this.isComplete ? this.#lastAt : endedAt
    if (this.#poisonAt === undefined) return [undefined, rate(this.others, last - first)]
    const after = rate(this.others - this.othersBefore, last - this.#poisonAt)
    return [rate(this.othersBefore, this.#poisonAt - first), after]
  }
}

const rate = (count: number, ms: number) => (ms <= 0 ? 0 : (count * 1_000) / ms)

const recordOf: RecordOf = (number) => ({ key: Buffer.from(String(number)), value: BODY })

/**
 * Runs until all other records are handled and the poison record is settled, or until the time
 * limit. The time starts with the first record.
 */
export async function race(racer: Racer, course: Course, mostMs: number): Promise<Result> {
  const broker = new Broker(await brokers())
  const names = ownNames()
  const watch = new Watch(course)
  try {
    await broker.declare(1, names.topic)
    await broker.fill(names.topic, 1, course.records, recordOf)
    const end = endOfPoison()
    const lane = { ...names, hosts: broker.hosts, handle: (number: number) => watch.handle(number) }
    const running = await racer.start(lane)
    const isOver = async () => {
      if (!watch.isComplete) return false
      if (racer.reportsTheEnd) return course.poison === undefined || end.became() !== undefined
      const [committed = 0] = await broker.committed({ ...names, group: running.group }, 1)
      return committed === course.records
    }
    const endedAt = await ended(watch, isOver, mostMs)
    end.forget()
    const [committed = 0] = await broker.committed({ ...names, group: running.group }, 1)
    const [perSecondBefore, perSecondAfter] = watch.rates(endedAt)
    await running.stop()
    const deadLetters = await countIfThere(broker, deadLettersOf(names))
    const { others, repeated, seconds, poisonAttempts } = watch
    return {
      name: racer.name,
      ...{ others, repeated, seconds, perSecondBefore, perSecondAfter, poisonAttempts },
      ...{ deadLetters, became: end.became(), committed },
    }
  } finally {
    await broker.delete(names)
    await broker.close()
  }
}

function endOfPoison(): { became(): Result['became']; forget(): void } {
  let became: Result['became']
  const forget = onEvent((event) => {
    if (event.type !== 'enacted' || event.enactment.kind !== 'done') return
    const { kind } = event.decision
    if (kind === 'deadLetter' || kind === 'quarantine') became = kind
  })
  return { became: () => became, forget }
}

/** Returns the end time. The time to join a group does not count. */
async function ended(
  watch: Watch,
  isOver: () => Promise<boolean>,
  mostMs: number,
): Promise<number> {
  while (watch.beganAt === undefined) await sleep(POLL_MS)
  const latest = watch.beganAt + mostMs
  while (performance.now() < latest && !(await isOver())) await sleep(POLL_MS)
  return performance.now()
}

async function countIfThere(broker: Broker, topic: string): Promise<number> {
  return (await broker.has(topic)) ? broker.count(topic, 1) : 0
}
