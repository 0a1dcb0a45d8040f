/** Returns a percentile by nearest rank; 0 when there are no values. */
export function percentile(values: readonly number[], percent: number): number {
  const sorted = values.toSorted((one, other) => one - other)
  const index = Math.ceil((sorted.length * percent) / 100) - 1
  return sorted[Math.max(0, index)] ?? 0
}

/** Returns the maximum number of times that lie within one second. */
export function mostInOneSecond(times: readonly number[]): number {
  const sorted = times.toSorted((one, other) => one - other)
  let first = 0
  let most = 0
  for (const [index, at] of sorted.entries()) {
    while (at - (sorted[first] as number) >= 1_000) first += 1
    most = Math.max(most, index - first + 1)
  }
  return most
}
