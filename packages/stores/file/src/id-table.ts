import type { IdHash } from './hashing.ts'
import { DEAD } from './rows.ts'
import type { Ref, Segment } from './segment.ts'

const FIRST_SLOTS = 1_024
/** Two numbers per slot: the segment, from 1, and the row. 0 is a slot that was never used. */
const WIDTH = 2
/** After growing, a quarter is used, so it doubles before it is rebuilt. */
const ROOM = 4

/**
 * A hash table of the dead letters by id: open addressing with linear probing. Slots of deleted entries
 * are reused, or omitted when the table is rebuilt.
 */
export class IdTable {
  #slots = new Uint32Array(FIRST_SLOTS * WIDTH)
  #used = 0
  readonly #segments: (Segment | undefined)[] = [undefined]
  readonly #numbers = new Map<Segment, number>()

  attach(segment: Segment): void {
    this.#numbers.set(segment, this.#segments.push(segment) - 1)
  }

  detach(segment: Segment): void {
    const number = this.#numbers.get(segment)
    if (number === undefined) return
    this.#segments[number] = undefined
    this.#numbers.delete(segment)
  }

  visit(hash: IdHash, visit: (ref: Ref) => void): void {
    const slots = this.#slots
    for (let slot = this.#home(hash[0]); slots[slot] !== 0; slot = this.#next(slot)) {
      const segment = this.#segments[slots[slot] ?? 0]
      const row = slots[slot + 1] ?? 0
      if (segment === undefined || segment.rows.state[row] === DEAD) continue
      if (segment.rows.isOf(row, hash)) visit({ segment, row })
    }
  }

  insert({ segment, row }: Ref): void {
    if ((this.#used + 1) * 2 * WIDTH > this.#slots.length) this.#makeRoom()
    this.#put(this.#numbers.get(segment) ?? 0, row, segment.rows.firstWord(row))
  }

  #put(number: number, row: number, word: number): void {
    const slots = this.#slots
    let slot = this.#home(word)
    while (slots[slot] !== 0 && !this.#isFree(slot)) slot = this.#next(slot)
    if (slots[slot] === 0) this.#used += 1
    slots[slot] = number
    slots[slot + 1] = row
  }

  #isFree(slot: number): boolean {
    const segment = this.#segments[this.#slots[slot] ?? 0]
    return segment === undefined || segment.rows.state[this.#slots[slot + 1] ?? 0] === DEAD
  }

  #makeRoom(): void {
    const old = this.#slots
    let kept = 0
    for (let slot = 0; slot < old.length; slot += WIDTH) {
      if (old[slot] !== 0 && !this.#isFree(slot)) kept += 1
    }
    const slots = 2 ** Math.ceil(Math.log2(Math.max(FIRST_SLOTS, kept * ROOM)))
    this.#slots = new Uint32Array(slots * WIDTH)
    this.#used = 0
    for (let slot = 0; slot < old.length; slot += WIDTH) this.#move(old[slot], old[slot + 1] ?? 0)
  }

  #move(number: number | undefined, row: number): void {
    const segment = this.#segments[number ?? 0]
    if (number === undefined || segment === undefined || segment.rows.state[row] === DEAD) return
    this.#put(number, row, segment.rows.firstWord(row))
  }

  #home(word: number): number {
    return (word & (this.#slots.length / WIDTH - 1)) * WIDTH
  }

  #next(slot: number): number {
    return (slot + WIDTH) & (this.#slots.length - 1)
  }
}
