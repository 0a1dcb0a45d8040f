import { statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileStore } from '@redrive/file-store'
import { brokenIf } from '../evidence/evidence.ts'
import { atScale, type ByScale, type Scenario } from '../harness/scenario.ts'
import { startChild } from '../harness/process.ts'
import { becomesTrue, lasting } from '../harness/wait.ts'
import type { Emitting } from './emitting.ts'

const PROGRAM = new URL('./emitting.ts', import.meta.url)
const KILLS: ByScale<number> = { smoke: 8, quick: 20, full: 200 }
/** Maximum time from ready to the kill: from the first save to hundreds of saves. */
const LONGEST_MS = 250

/** Every event that was confirmed as stored is in the store after its process died. */
export const kills: Scenario = {
  name: 'kills',
  story: 'an emitting process is killed again and again while its sink is down',
  isInSmoke: true,
  async play({ scale, folder, say }) {
    const directory = join(folder, 'store')
    const ledger = join(folder, 'ledger')
    const count = atScale(KILLS, scale)
    for (let time = 1; time <= count; time++) {
      // One in four dies at any time, perhaps before its first event is stored.
      await killOnce(directory, ledger, time % 4 !== 0)
      if (time % 20 === 0) say(`${time} kills`)
    }
    const acknowledged = linesOf(await readFile(ledger, 'utf8'))
    const store = fileStore({ directory })
    const kept = new Map<string, string>()
    let after: string | undefined
    do {
      const page = await store.list({
        limit: 1_000,
        ...(after === undefined ? {} : { cursor: after }),
      })
      for (const { event } of page.deadLetters)
        kept.set(event.id, Buffer.from(event.bytes).toString('base64'))
      after = page.nextCursor
    } while (after !== undefined)
    const missing = acknowledged.filter(({ id }) => !kept.has(id))
    const changed = acknowledged.filter(({ id, body }) => kept.has(id) && kept.get(id) !== body)
    const { count: counted } = await store.stats()
    await store.close()
    return {
      events: acknowledged.length,
      figures: [
        `${count} kills`,
        `${acknowledged.length} events acknowledged as stored`,
        `${missing.length} missing`,
        `${changed.length} changed`,
        `${kept.size - acknowledged.length} more were stored than acknowledged`,
      ],
      broken: brokenIf(
        [missing.length > 0, 'lost', `acknowledged but not in the store: ${missing[0]?.id}`],
        [changed.length > 0, 'changed', `changed in the store: ${changed[0]?.id}`],
        [counted !== kept.size, 'unexpected', `${counted} counted, ${kept.size} listed`],
        [acknowledged.length < count / 2, 'scenario', 'too few events were acknowledged'],
      ),
    }
  },
}

/** 10 s until a first event is stored: far more than a busy disk takes. */
const FIRST_MS = 10_000

/** Returns the size of the ledger; 0 before its first line. */
const sizeOf = (ledger: string) => statSync(ledger, { throwIfNoEntry: false })?.size ?? 0

async function killOnce(
  directory: string,
  ledger: string,
  hasAcknowledged: boolean,
): Promise<void> {
  const sizeBefore = sizeOf(ledger)
  const child = startChild(PROGRAM, { directory, ledger } satisfies Emitting)
  await child.waitFor('ready')
  if (hasAcknowledged) {
    await becomesTrue(() => sizeOf(ledger) > sizeBefore, { withinMs: FIRST_MS, everyMs: 5 })
  }
  await lasting(Math.random() * LONGEST_MS)
  await child.kill()
}

/** Reads the complete lines. The last line may be cut off by the kill, so it acknowledges nothing. */
const linesOf = (ledger: string) =>
  ledger
    .split('\n')
    .map((line) => /^(\S+) (\S+) end$/.exec(line))
    .flatMap((match) =>
      match === null ? [] : [{ id: match[1] as string, body: match[2] as string }],
    )
