/** A min-heap by a number. Equal keys have no defined order, so keys should be unique where order matters. */
export class Heap<T> {
  readonly #keyOf: (item: T) => number
  readonly #items: T[] = []

  constructor(keyOf: (item: T) => number) {
    this.#keyOf = keyOf
  }

  get size(): number {
    return this.#items.length
  }
  get first(): T | undefined {
    return this.#items[0]
  }
  items(): readonly T[] {
    return this.#items
  }

  push(item: T): void {
    const items = this.#items
    const key = this.#keyOf(item)
    let at = items.length
    items.push(item)
    while (at > 0) {
      const parent = (at - 1) >> 1
      const above = items[parent] as T
      if (this.#keyOf(above) <= key) break
      items[at] = above
      at = parent
    }
    items[at] = item
  }

  pop(): T | undefined {
    const items = this.#items
    const first = items[0]
    const last = items.pop()
    if (last !== undefined && items.length > 0) this.#sink(last)
    return first
  }

  #sink(item: T): void {
    const items = this.#items
    const key = this.#keyOf(item)
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= items.length) break
      const right = child + 1
      if (right < items.length && this.#key(right) < this.#key(child)) child = right
      if (this.#key(child) >= key) break
      items[at] = items[child] as T
      at = child
    }
    items[at] = item
  }

  #key(index: number): number {
    return this.#keyOf(this.#items[index] as T)
  }
}
