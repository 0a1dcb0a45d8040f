import { detach } from './text.ts'

/** 100 results: a storm has few different failures. */
const MAX_RESULTS = 100
/** 1,000 characters: a longer text is rarely seen twice. */
const MAX_LENGTH = 1_000

/** Returns the same function of a text, which remembers its last results. The function must be pure. */
export function remembering<T>(compute: (text: string) => T): (text: string) => T {
  const results = new Map<string, T>()
  return (text) => {
    const known = results.get(text)
    if (known !== undefined || text.length > MAX_LENGTH) return known ?? compute(text)
    const result = compute(text)
    if (results.size >= MAX_RESULTS) results.clear()
    // A slice would keep the whole text that it is a part of.
    results.set(detach(text), result)
    return result
  }
}
