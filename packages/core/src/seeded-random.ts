import type { Random } from './backoff.ts'

/**
 * A random source that repeats its numbers for the same seed. Call it for a number in [0, 1): it fits
 * wherever a `Random` is expected.
 *
 * ```ts
 * const random = seededRandom(42)
 * await consume(transport, handler, { random })
 * const victim = random.pick(messages)
 * ```
 */
export interface SeededRandom extends Random {
  /** The seed to pass to `seededRandom` for the same numbers. Print it in every failure message. */
  readonly seed: number
  /** A whole number from 0 to `below - 1`. */
  int(below: number): number
  /** An item of the list, each with the same probability. The list must not be empty. */
  pick<T>(list: readonly T[]): T
  /** True with this probability (0–1). */
  chance(probability: number): boolean
  /** A shuffled copy of the list. */
  shuffle<T>(list: readonly T[]): T[]
}

/** Returns a random source whose numbers all follow from the seed, a whole number. */
export function seededRandom(seed: number): SeededRandom {
  if (!Number.isSafeInteger(seed))
    throw new TypeError(`The seed must be a whole number, got "${seed}"`)
  const draw = sfc32(seed)
  const random = () => draw() / 2 ** 32
  const int = (below: number) => Math.floor(random() * below)
  const pick = <T>(list: readonly T[]): T => {
    if (list.length === 0) throw new RangeError('pick: the list is empty')
    return list[int(list.length)] as T
  }
  const chance = (probability: number) => random() < probability
  const shuffle = <T>(list: readonly T[]): T[] => {
    const left = [...list]
    return list.map(() => left.splice(int(left.length), 1)[0] as T)
  }
  return Object.assign(random, { seed, int, pick, chance, shuffle })
}

/** sfc32 of PractRand (Chris Doty-Humphrey): 128 bits of state, no known weakness, six operations. */
function sfc32(seed: number): () => number {
  let a = seed >>> 0
  let b = Math.floor(seed / 2 ** 32) >>> 0
  let c = 0
  let counter = 1
  const draw = () => {
    const sum = (a + b + counter) >>> 0
    counter = (counter + 1) >>> 0
    a = (b ^ (b >>> 9)) >>> 0
    b = (c + (c << 3)) >>> 0
    c = (((c << 21) | (c >>> 11)) + sum) >>> 0
    return sum
  }
  // 15 rounds, as its author does for a 64-bit seed: before that, similar seeds give similar numbers.
  for (let round = 0; round < 15; round++) draw()
  return draw
}
