import { type EndResult, type EntryEnd, MAX_ENTRIES, type Member } from './server.ts'

interface Waiting {
  readonly end: EntryEnd
  readonly resolve: (result: EndResult) => void
  readonly reject: (error: unknown) => void
}

/** Collects the ends of claims of one turn of the event loop, and sends them in one script. */
export class Ends {
  readonly #member: Member
  #waiting: Waiting[] = []

  constructor(member: Member) {
    this.#member = member
  }

  add(end: EntryEnd): Promise<EndResult> {
    if (this.#waiting.length === 0) setImmediate(() => this.#send())
    return new Promise((resolve, reject) => {
      this.#waiting.push({ end, resolve, reject })
    })
  }

  #send(): void {
    const all = this.#waiting
    this.#waiting = []
    for (let i = 0; i < all.length; i += MAX_ENTRIES) this.#sendSome(all.slice(i, i + MAX_ENTRIES))
  }

  #sendSome(some: readonly Waiting[]): void {
    this.#member.end(some.map(({ end }) => end)).then(
      (results) => some.forEach(({ resolve }, i) => resolve(results[i] ?? 'lost')),
      (error: unknown) => some.forEach(({ reject }) => reject(error)),
    )
  }
}
