import { startProcess } from '../../catalog/drills/process.ts'
import { type Entry, readHistory } from '../../history.ts'
import { standstillsIn, stoodMs } from '../../standstill.ts'
import type { Scene } from './attack.ts'

export const ASKER = 'live'
export const LIVEZ = '/livez'
/** A second: an orchestrator would restart who takes longer. */
const LIVE_MS = 1_000

export interface LiveAsker {
  readonly url: string
  readonly folder: string
}

/** Meanwhile the server says at once that it lives. Another process asks: this one is busy attacking. */
export async function staysLive(
  { target, tries, world }: Scene,
  attack: () => Promise<void>,
): Promise<void> {
  const { folder } = world
  const program = new URL('./live-asker.ts', import.meta.url).href
  const asker = await startProcess(program, { url: target.server.url, folder })
  try {
    await attack()
    asker.tell('over')
    await asker.gone
  } finally {
    await asker.kill()
  }
  const entries = readHistory(folder).filter(({ by }) => by === ASKER)
  const slowest = slowestOf(entries)
  if (slowest === undefined) throw new Error('nobody was asked whether the server lives')
  tries.note(`${LIVEZ} took ${Math.round(slowest)} ms meanwhile`, slowest > LIVE_MS)
  const problem = entries.find((entry) => entry.what === 'note')
  tries.note(`${LIVEZ} had no answer: ${problem?.text}`, problem !== undefined)
}

/** Without the time in which the machine stood still. */
function slowestOf(entries: readonly Entry[]): number | undefined {
  const standstills = standstillsIn(entries)
  const took = entries.flatMap((entry) =>
    entry.what === 'measured'
      ? [entry.value - stoodMs({ from: entry.at - entry.value, to: entry.at }, standstills)]
      : [],
  )
  return took.length === 0 ? undefined : Math.max(...took)
}
