import type { Evidence, FoundMessage, Place, Rule, Verdict } from '../src/evidence/evidence.ts'
import type { Entry, Fact } from '../src/evidence/history.ts'
import type { Kind } from '../src/evidence/message.ts'

/** A handwritten history: time advances by 1 ms with every fact. */
export class Story {
  readonly #entries: Entry[] = []
  readonly #found: FoundMessage[] = []
  readonly #effects = new Map<string, number>()
  #committed: Set<string> | undefined

  at(by: string, ...facts: readonly Fact[]): this {
    for (const fact of facts) this.#entries.push({ at: this.#entries.length, by, ...fact })
    return this
  }

  /** Records a message that was sent and accepted. */
  sent(id: string, kind: Kind = 'good'): this {
    return this.at('producer', { what: 'attempted', id, kind }, { what: 'acknowledged', id })
  }

  /** Records a successful run, the first one or a repeated one. */
  handled(id: string, isNew = true): this {
    if (isNew) this.effect(id)
    return this.at(
      'consumer-1',
      { what: 'handler_started', id, attempt: 1 },
      { what: 'effect', id, isNew },
    )
  }

  /** Records an effect in the database. */
  effect(id: string): this {
    this.#effects.set(id, (this.#effects.get(id) ?? 0) + 1)
    return this
  }

  /** Gives every message a business fact from now on; these facts exist. */
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

  /** Records the end of the fault, and that everything has drained after `seconds`. */
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
