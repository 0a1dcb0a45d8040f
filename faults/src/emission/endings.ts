import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { statSync } from 'node:fs'
import { brokenIf } from '../evidence/evidence.ts'
import { startChild } from '../harness/process.ts'
import { atScale, type ByScale, type Scenario } from '../harness/scenario.ts'
import { becomesTrue, lasting } from '../harness/wait.ts'
import type { EndingProgram } from './ending.ts'
import { storedIds } from './stored.ts'

const PROGRAM = new URL('./ending.ts', import.meta.url)
const KILLS: ByScale<number> = { smoke: 8, quick: 20, full: 200 }
const BURSTS: ByScale<number> = { smoke: 1, quick: 3, full: 10 }
const IN_FLIGHT = 10_000
/** Maximum time from the first confirmed event to the kill. */
const LONGEST_MS = 250

/** Every event that `emit` confirmed survives SIGKILL, because it was stored before it was sent. */
export const beforeSend: Scenario = {
  name: 'before-send',
  story:
    "a process with durability 'before_send' is killed again and again while its sink is healthy",
  isInSmoke: true,
  async play({ scale, folder, say }) {
    const count = atScale(KILLS, scale)
    for (let time = 1; time <= count; time++) {
      const before = sizeOf(folder)
      const child = start({ folder, durability: 'before_send', burst: undefined })
      await child.waitFor('ready')
      await becomesTrue(() => sizeOf(folder) > before, { withinMs: 10_000, everyMs: 5 })
      await lasting(Math.random() * LONGEST_MS)
      await child.kill()
      if (time % 20 === 0) say(`${time} kills`)
    }
    return judge(folder, 'acknowledged', `${count} kills`, count)
  },
}

/** SIGTERM loses no event in flight: `flushOnExit` delivers or stores all of them. */
export const signals: Scenario = {
  name: 'signals',
  story: `SIGTERM while ${IN_FLIGHT} events are in flight, without durability 'before_send'`,
  isInSmoke: true,
  async play({ scale, folder }) {
    const count = atScale(BURSTS, scale)
    for (let time = 1; time <= count; time++) {
      const child = start({ folder, durability: 'on_failure', burst: IN_FLIGHT })
      await child.waitFor('emitted')
      child.signal('SIGTERM')
      await child.gone
    }
    return judge(folder, 'emitted', `${count} signals`, count * IN_FLIGHT)
  },
}

const start = (ending: EndingProgram) =>
  startChild<{ readonly kind: 'ready' | 'emitted' }>(PROGRAM, ending)

/** Returns the size of the list of confirmed events; 0 before its first line. */
const sizeOf = (folder: string) =>
  statSync(join(folder, 'acknowledged'), { throwIfNoEntry: false })?.size ?? 0

async function judge(
  folder: string,
  promised: 'acknowledged' | 'emitted',
  faults: string,
  least: number,
) {
  const expected = await linesOf(folder, promised)
  const sent = await linesOf(folder, 'delivered')
  const delivered = new Set(sent)
  const stored = new Set(await storedIds(join(folder, 'store')))
  const lost = expected.filter((id) => !delivered.has(id) && !stored.has(id))
  const both = [...delivered].filter((id) => stored.has(id)).length
  return {
    events: expected.length,
    figures: [
      faults,
      `${expected.length} events ${promised}`,
      `${delivered.size} delivered`,
      `${stored.size} stored`,
      // The sink accepted the event when the process, or its emitter, ended.
      `${both} of them delivered and stored`,
      `${lost.length} lost`,
    ],
    broken: brokenIf(
      [lost.length > 0, 'lost', `${lost.length} events, the first one is ${lost[0]}`],
      [sent.length !== delivered.size, 'unexpected', 'an event was delivered twice'],
      [expected.length < least, 'scenario', 'too few events were emitted'],
    ),
  }
}

const linesOf = async (folder: string, name: string): Promise<readonly string[]> =>
  (await readFile(join(folder, name), 'utf8')).split('\n').slice(0, -1)
