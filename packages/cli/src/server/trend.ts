import type { Client, Group } from '@redrive/api'
import type { Io } from '../io.ts'
import { spark } from '../text/format.ts'

/** The time range of a trend. */
export type Window = 'hour' | 'day'

const WINDOWS = {
  hour: { ms: 3_600_000, per: 'minute' },
  day: { ms: 86_400_000, per: 'hour' },
} as const

/** 8 bars of 7.5 minutes or 3 hours each. This keeps the column narrow. */
const BARS = 8
/** 20 groups, with one request each. Users rarely read further down the screen. */
const GROUPS = 20
/** 4 concurrent requests: fast enough, and a fraction of what the server allows one caller. */
const CONCURRENCY = 4

/** Returns a sparkline for each of the first groups, by group id. */
export async function sparksOf(
  io: Io,
  client: Client,
  groups: readonly Group[],
  window: Window,
): Promise<ReadonlyMap<string, string>> {
  const sparks = new Map<string, string>()
  const left = groups.slice(0, GROUPS).map(({ id }) => id)
  const before = io.now()
  const worker = async () => {
    for (let id = left.shift(); id !== undefined; id = left.shift()) {
      sparks.set(id, await sparkOf(io, client, id, window, before))
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, worker))
  return sparks
}

async function sparkOf(io: Io, client: Client, id: string, window: Window, before: number) {
  const { ms, per } = WINDOWS[window]
  const after = before - ms
  const query = { per, after, before, groups: [id] }
  const { points } = await client.call('trend', { query }, { signal: io.signal })
  const bars = Array.from({ length: BARS }, () => 0)
  for (const { at, count } of points) {
    // The first and the last minute may be only partly inside the window.
    const bar = Math.min(BARS - 1, Math.max(0, Math.floor(((at - after) / ms) * BARS)))
    bars[bar] = (bars[bar] as number) + count
  }
  return spark(bars)
}
