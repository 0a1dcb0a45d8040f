import { type Duration, type FailureClass, FAILURE_CLASSES, FIRST_CYCLE } from '@redrive/core'
import { type Check, readOptions } from '@redrive/core/internal'
import { CLOCK, STORE } from './checks.ts'
import { type Clock, systemClock } from './clock.ts'
import { REPLAY_REQUESTED } from './emit/result.ts'
import type {
  DeadLetterSource,
  DrainedBatch,
  DrainedDeadLetter,
  ReplayMessage,
} from './ports/dead-letter-source.ts'
import type { DeadLetterStore, StoredDeadLetter, StoreFilter } from './ports/dead-letter-store.ts'
import { drainedOf, storedOf } from './store-source-message.ts'

export interface StoreSourceOptions {
  /** The store of the emitters. The source closes it. */
  readonly store: DeadLetterStore
  /** Name of the store. It is the origin of its dead letters. */
  readonly name: string
  /**
   * How long transient failures are left in the store, because `autoReplay` of the emitters sends them
   * ('0s'–'3650d'). Use its `maxAge`. Default '1d'.
   */
  readonly leaveTransientFor?: Duration
  /** Clock for the age of dead letters. Default: the system's. */
  readonly clock?: Clock
}

const DAY_MS = 86_400_000
/** 5 min: an emitter that stored an event before it sent it is still sending it. */
const IN_FLIGHT_MS = 300_000
const PAGE = 100
const LASTING: readonly FailureClass[] = FAILURE_CLASSES.filter((one) => one !== 'transient')

const NAME: Check = {
  isValid: (value) => typeof value === 'string' && value !== '',
  expected: 'a name such as the directory of the store',
}

/**
 * Returns the dead letters of sinks as a source of the catalog. While a batch is open, its dead letters are claimed, so
 * that no emitter sends them. A replay stores the event again, and an emitter with that sink sends it.
 */
export function storeSource(options: StoreSourceOptions): DeadLetterSource {
  return new StoreSource(
    readOptions('storeSource()', options, (top) => ({
      store: top.required<DeadLetterStore>('store', STORE),
      name: top.required<string>('name', NAME),
      leaveMs: top.duration('leaveTransientFor', DAY_MS, { min: 0, max: 3_650 * DAY_MS }),
      clock: top.ifGiven<Clock>('clock', CLOCK) ?? systemClock,
    })),
  )
}

interface Resolved {
  readonly store: DeadLetterStore
  readonly name: string
  readonly leaveMs: number
  readonly clock: Clock
}

/** A dead letter that this process has claimed. */
interface Held {
  readonly deadLetter: StoredDeadLetter
  /** Ends the claim. `true` deletes the dead letter from the store. */
  end(isReleased: boolean): Promise<void>
}

const ABANDONED = new Error('the batch was abandoned')

class StoreSource implements DeadLetterSource {
  readonly source: string
  readonly replay = 'copy'
  readonly #options: Resolved
  readonly #open = new Set<Held>()

  constructor(options: Resolved) {
    this.#options = options
    this.source = options.name
  }

  async drain({ limit }: { readonly limit: number }): Promise<DrainedBatch> {
    const held: Held[] = []
    try {
      for (const filter of this.#filters()) await this.#hold(filter, limit, held)
    } catch (error) {
      await this.#end(held, false)
      throw error
    }
    return {
      deadLetters: held.map(({ deadLetter }) => drainedOf(deadLetter, this.source)),
      release: () => this.#end(held, true),
      abandon: () => this.#end(held, false),
    }
  }

  /** Lasting failures first, because no emitter sends them again. Then the others that are old enough. */
  #filters(): readonly StoreFilter[] {
    const { leaveMs, clock } = this.#options
    const savedBefore = clock.now() - leaveMs + 1
    const lasting = LASTING.map((failureClass) => ({ class: failureClass }))
    return [...lasting, { class: 'transient', savedBefore }]
  }

  async #hold(filter: StoreFilter, limit: number, held: Held[]): Promise<void> {
    const { store } = this.#options
    let cursor: string | undefined
    do {
      if (held.length >= limit) return
      const query = { filter, limit: PAGE, ...(cursor !== undefined && { cursor }) }
      const page = await store.list(query)
      const wanted = page.deadLetters.filter((one) => this.#isDrained(one))
      const room = wanted.slice(0, limit - held.length)
      const taken = await Promise.all(room.map(({ id }) => this.#claim(id)))
      held.push(...taken.filter((one) => one !== undefined))
      cursor = page.nextCursor
    } while (cursor !== undefined)
  }

  /** Leaves events that an emitter is going to send: those that it has just stored, and requested replays. */
  #isDrained({ reason, savedAt }: StoredDeadLetter): boolean {
    const ageMs = this.#options.clock.now() - savedAt
    if (reason === 'before_send') return ageMs > IN_FLIGHT_MS
    // No emitter has sent it for a day: it has no automatic replay, or none has this sink.
    if (reason === 'replay_requested') return ageMs > DAY_MS
    return true
  }

  /** Claims a dead letter: its replay "sends" it until the batch ends. Undefined when another process has it. */
  async #claim(id: string): Promise<Held | undefined> {
    const { store } = this.#options
    const claimed = Promise.withResolvers<StoredDeadLetter | undefined>()
    const ended = Promise.withResolvers<void>()
    const done = store.replay(id, (deadLetter) => {
      claimed.resolve(deadLetter)
      return ended.promise
    })
    done.then(() => claimed.resolve(undefined), claimed.reject)
    const deadLetter = await claimed.promise
    if (deadLetter === undefined) return undefined
    const held: Held = {
      deadLetter,
      async end(isReleased) {
        if (isReleased) ended.resolve()
        else ended.reject(ABANDONED)
        await done.catch((error: unknown) => {
          if (error !== ABANDONED) throw error
        })
      },
    }
    this.#open.add(held)
    // It may have changed since it was listed.
    if (this.#isDrained(deadLetter)) return held
    await this.#end([held], false)
    return undefined
  }

  /** Ends dead letters of a batch. Only the first call has an effect. */
  async #end(held: readonly Held[], isReleased: boolean): Promise<void> {
    const open = held.filter((one) => this.#open.delete(one))
    await Promise.all(open.map((one) => one.end(isReleased)))
  }

  async publish({ deadLetter, replayId }: ReplayMessage): Promise<void> {
    const { cycle } = deadLetter.delivery
    await this.#options.store.save({
      ...storedOf(deadLetter),
      ...REPLAY_REQUESTED,
      cycle: { ...FIRST_CYCLE, number: cycle.number + 1 },
      replayId,
      savedAt: this.#options.clock.now(),
    })
  }

  async putBack(deadLetters: readonly DrainedDeadLetter[]): Promise<void> {
    for (const one of deadLetters) await this.#options.store.save(storedOf(one))
  }

  /** Emitters confirm nothing: an event that its sink accepted is no longer in the store. */
  confirmations(): ReturnType<DeadLetterSource['confirmations']> {
    const nothing = () => Promise.resolve()
    return Promise.resolve({ confirmations: [], release: nothing, abandon: nothing })
  }

  async depth(): Promise<number> {
    return (await this.#options.store.stats()).count
  }

  async close(): Promise<void> {
    await this.#end([...this.#open], false)
    await this.#options.store.close()
  }
}
