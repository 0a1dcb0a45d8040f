// Time and memory of this process.

export async function msOf(act: () => Promise<unknown>): Promise<number> {
  const beganAt = performance.now()
  await act()
  return performance.now() - beganAt
}

/** Returns the times in ms. The first run is not counted, because it compiles code and fills caches. */
export async function repeatedly(
  times: number,
  act: (turn: number) => Promise<unknown>,
): Promise<readonly number[]> {
  const all: number[] = []
  for (let turn = 0; turn <= times; turn += 1) all.push(await msOf(() => act(turn)))
  return all.slice(1)
}

/**
 * Returns the memory in KB that objects and buffers of this process occupy after a collection.
 * Collects twice: the first collection runs finalizers, and the second removes their garbage.
 */
export function memoryKb(): number {
  if (globalThis.gc === undefined) throw new Error('Memory needs node --expose-gc')
  globalThis.gc()
  globalThis.gc()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 1_024
}

/** User and system time of this process in µs. */
export function cpuUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}
