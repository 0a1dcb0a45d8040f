// The same dead letters replayed by one run, or by many runs at the same time.
import { catalog, migrate, type Replayer } from '@redrive/catalog'
import { rabbitmqSource } from '@redrive/rabbitmq'
import { setTimeout as sleep } from 'node:timers/promises'
import { listed, SOURCE } from '../catalog/letters.ts'
import { approvedRun, lettersTo, ownTarget, TABLES } from '../catalog/replaying.ts'
import type { Overrides } from '../comparison.ts'
import { PATIENCE_MS } from '../patience.ts'
import { dropLeftovers, emptied, ownDatabase, poolOf, undisturbed } from '../postgres/database.ts'
import { msOf } from './measuring.ts'
import type { Stage } from './subject.ts'

const ITEMS = 10_000
const QUICK_ITEMS = 1_000
/** Two publishers, as in a process of the server. */
const PUBLISHERS = [1, 2]
/** Connections of a server to its database, by default. */
const POOL = 15
/** The server waits 100 ms after an empty turn. That would be measured instead of the work. */
const IDLE_MS = 5

export async function openRuns({ quick }: Overrides): Promise<Stage> {
  await dropLeftovers()
  const items = quick ? QUICK_ITEMS : ITEMS
  const target = await ownTarget()
  const database = await ownDatabase()
  const pool = poolOf(database.url, { max: POOL })
  await migrate(pool)
  const made = catalog({ pool })
  const source = rabbitmqSource({ url: target.url, queue: target.queue })
  const replayer = made.replays.replayer({ sources: [{ source, name: SOURCE }] })

  const round = async (size: number) => {
    await undisturbed(pool)
    await emptied(pool, TABLES.map((table) => `redrive_catalog.${table}`).join(', '))
    await target.empty()
    await made.ingest(listed(lettersTo(target.queue, items)))
    const startOf = (run: number) => Math.round((items * run) / size)
    for (let run = 0; run < size; run += 1) await approvedRun(made, startOf(run), startOf(run + 1))
    await pool.query('vacuum analyze redrive_catalog.replay_item, redrive_catalog.dead_letter')
    const ms = await msOf(() => publishedAll(replayer, items))
    await target.expect(items)
    return ms
  }
  return {
    warmUp: async () => void (await round(1)),
    measure: async (size) => ({ replay: [await round(size)] }),
    async close() {
      await source.close()
      await target.close()
      await pool.end()
      await database.drop()
    },
  }
}

async function publishedAll(replayer: Replayer, items: number): Promise<void> {
  const endsAt = performance.now() + 4 * PATIENCE_MS
  let published = 0
  const publish = async () => {
    while (published < items) {
      const turn = await replayer.turn()
      if (turn !== undefined && turn.failed > 0) throw new Error(`${turn.failed} items failed.`)
      if (performance.now() > endsAt) throw new Error(`${published} of ${items} items published.`)
      published += turn?.published ?? 0
      if (turn === undefined) await sleep(IDLE_MS)
    }
  }
  await Promise.all(PUBLISHERS.map(publish))
}
