/** The value that so many of a hundred stay below. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  const index = Math.ceil((sorted.length * percent) / 100) - 1
  return sorted[Math.max(0, index)] ?? 0
}

/** The most moments that lie within one second of each other. */
export function mostInOneSecond(moments: readonly number[]): number {
  const sorted = moments.toSorted((one, other) => one - other)
  let first = 0
  let most = 0
  for (const [index, at] of sorted.entries()) {
    while (at - (sorted[first] as number) >= 1_000) first += 1
    most = Math.max(most, index - first + 1)
  }
  return most
}
