import { fork } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { fileStore } from '@redrive/file-store'
import { brokenIf, type Drill } from '../drill.ts'
import { atScale, type ByScale } from '../scenario.ts'
import { becomesTrue } from '../wait.ts'

const PROGRAM = fileURLToPath(new URL('./emitting.ts', import.meta.url))
const KILLS: ByScale<number> = { smoke: 8, quick: 20, full: 200 }
/** From when it is ready: from the first save to hundreds of them. */
const LONGEST_MS = 250

/** Every event that its process was told to be stored is there when that process is dead. */
export const kills: Drill = {
  name: 'kills',
  story: 'an emitting process is killed again and again while its sink is down',
  isInSmoke: true,
  async play({ scale, folder, say }) {
    const directory = join(folder, 'store')
    const ledger = join(folder, 'ledger')
    const count = atScale(KILLS, scale)
    for (let time = 1; time <= count; time++) {
      // One in four dies whenever it may be, perhaps before its first event is stored.
      await killOnce(directory, ledger, time % 4 !== 0)
      if (time % 20 === 0) say(`${time} kills`)
    }
    const acknowledged = linesOf(await readFile(ledger, 'utf8'))
    const store = fileStore({ directory })
    const kept = new Map<string, string>()
    let after: string | undefined
    do {
      const page = await store.list({ most: 1_000, ...(after === undefined ? {} : { after }) })
      for (const { event } of page.deadLetters)
        kept.set(event.id, Buffer.from(event.bytes).toString('base64'))
      after = page.next
    } while (after !== undefined)
    const missing = acknowledged.filter(({ id }) => !kept.has(id))
    const changed = acknowledged.filter(({ id, body }) => kept.has(id) && kept.get(id) !== body)
    const { count: counted } = await store.stats()
    await store.close()
    return {
      events: acknowledged.length,
      told: [
        `${count} kills`,
        `${acknowledged.length} events acknowledged as stored`,
        `${missing.length} missing`,
        `${changed.length} changed`,
        `${kept.size - acknowledged.length} more were stored than acknowledged`,
      ],
      broken: brokenIf(
        [missing.length > 0, 'lost', `acknowledged and not there: ${missing[0]?.id}`],
        [changed.length > 0, 'changed', `not as it was: ${changed[0]?.id}`],
        [counted !== kept.size, 'unexpected', `${counted} counted, ${kept.size} listed`],
        [acknowledged.length < count / 2, 'scenario', 'hardly anything was acknowledged'],
      ),
    }
  },
}

/** 10 s until a first event is stored: far beyond what a busy disk takes. */
const FIRST_MS = 10_000

/** The size of the ledger; none before its first line. */
const sizeOf = (ledger: string) => statSync(ledger, { throwIfNoEntry: false })?.size ?? 0

async function killOnce(
  directory: string,
  ledger: string,
  hasAcknowledged: boolean,
): Promise<void> {
  const sizeBefore = sizeOf(ledger)
  const child = fork(PROGRAM, [directory, ledger], {
    execArgv: ['--conditions=@redrive/source'],
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
  const gone = once(child, 'exit')
  await once(child, 'message')
  if (hasAcknowledged) {
    await becomesTrue(() => sizeOf(ledger) > sizeBefore, { withinMs: FIRST_MS, everyMs: 5 })
  }
  await new Promise((resolve) => setTimeout(resolve, Math.random() * LONGEST_MS))
  child.kill('SIGKILL')
  await gone
}

/** The last line may be torn: it was being written when the process died, so it acknowledges nothing. */
const linesOf = (ledger: string) =>
  ledger
    .split('\n')
    .map((line) => /^(\S+) (\S+) end$/.exec(line))
    .flatMap((match) =>
      match === null ? [] : [{ id: match[1] as string, body: match[2] as string }],
    )
