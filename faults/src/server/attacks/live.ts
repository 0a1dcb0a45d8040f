import { startChild } from '../../harness/process.ts'
import { type Entry, readHistory } from '../../evidence/history.ts'
import { standstillsIn, stoodMs } from '../../evidence/stalls.ts'
import type { Scene } from './attack.ts'

export const ASKER = 'live'
export const LIVEZ = '/livez'
/** One second: an orchestrator would restart a server that takes longer. */
const LIVE_MS = 1_000

export interface LiveAsker {
  readonly url: string
  readonly folder: string
}

/**
 * Checks that the server reports liveness quickly during `work`. Another process sends the
 * requests, because this one is busy with the attack.
 */
export async function staysLive(
  { target, tries, world }: Scene,
  attack: () => Promise<void>,
): Promise<void> {
  const { folder } = world
  const program = new URL('./live-asker.ts', import.meta.url)
  const asker = startChild(program, { url: target.server.url, folder })
  try {
    await asker.waitFor('ready')
    await attack()
    asker.send('over')
    await asker.gone
  } finally {
    await asker.kill()
  }
  const entries = readHistory(folder).filter(({ by }) => by === ASKER)
  const slowest = slowestOf(entries)
  if (slowest === undefined) throw new Error('No liveness request was sent.')
  tries.note(`${LIVEZ} took ${Math.round(slowest)} ms during the attack`, slowest > LIVE_MS)
  const problem = entries.find((entry) => entry.what === 'note')
  tries.note(`${LIVEZ} got no response: ${problem?.text}`, problem !== undefined)
}

/** Returns the slowest response, without the time in which the machine was stalled. */
function slowestOf(entries: readonly Entry[]): number | undefined {
  const standstills = standstillsIn(entries)
  const took = entries.flatMap((entry) =>
    entry.what === 'measured'
      ? [entry.value - stoodMs({ from: entry.at - entry.value, to: entry.at }, standstills)]
      : [],
  )
  return took.length === 0 ? undefined : Math.max(...took)
}
