import type { Evidence, Found, Place, Rule, Verdict } from '../src/evidence.ts'
import type { Entry, Fact } from '../src/history.ts'
import type { Kind } from '../src/message.ts'

/** A history written by hand: a moment passes with every fact. */
export class Story {
  readonly #entries: Entry[] = []
  readonly #found: Found[] = []
  readonly #effects = new Map<string, number>()
  #committed: Set<string> | undefined

  at(by: string, ...facts: readonly Fact[]): this {
    for (const fact of facts) this.#entries.push({ at: this.#entries.length, by, ...fact })
    return this
  }

  /** Sent and accepted. */
  sent(id: string, kind: Kind = 'good'): this {
    return this.at('producer', { what: 'attempted', id, kind }, { what: 'acknowledged', id })
  }

  /** Run to success, for the first time or again. */
  handled(id: string, isNew = true): this {
    if (isNew) this.effect(id)
    return this.at(
      'consumer-1',
      { what: 'handler_started', id, attempt: 1 },
      { what: 'effect', id, isNew },
    )
  }

  /** In the database. */
  effect(id: string): this {
    this.#effects.set(id, (this.#effects.get(id) ?? 0) + 1)
    return this
  }

  /** From now on every message has a business fact, and these are there. */
  committed(...ids: readonly string[]): this {
    this.#committed = new Set([...(this.#committed ?? []), ...ids])
    return this
  }

  holds(place: Place, id: string, isWhole = true): this {
    this.#found.push({ id, place, queue: `orders ${place}`, reason: undefined, isWhole })
    return this
  }

  crash(inFlight: number): this {
    return this.at('harness', { what: 'exited', process: 'consumer-1', isCrash: true, inFlight })
  }

  /** The fault is over, and after so many seconds everything has drained. */
  drained(seconds = 1): this {
    const at = this.#entries.length
    this.#entries.push({ what: 'healed', by: 'harness', at })
    this.#entries.push({ what: 'drained', by: 'harness', at: at + seconds * 1_000 })
    return this
  }

  evidence(): Evidence {
    return {
      entries: this.#entries,
      found: this.#found,
      effects: this.#effects,
      ...(this.#committed === undefined ? {} : { committed: this.#committed }),
    }
  }
}

export const rulesIn = ({ violations }: Verdict): readonly Rule[] =>
  violations.map(({ rule }) => rule)
