// The same work by a server in one process, and by one whose roles are split over four processes.
import { setTimeout as sleep } from 'node:timers/promises'
import { catalog } from '@redrive/catalog'
import type { Pool } from 'pg'
import { bodyOf } from '../catalog/letters.ts'
import { ownTarget, type Target } from '../catalog/replaying.ts'
import type { Overrides } from '../comparison.ts'
import { PATIENCE_MS } from '../patience.ts'
import { dropLeftovers, ownDatabase } from '../postgres/database.ts'
import { type Program, startServer } from '../server/programs.ts'
import type { Costs, Stage } from './subject.ts'

const LETTERS = 20_000
const QUICK_LETTERS = 2_000
/** Time counts from a tenth of the work on, because processes start at different times. */
const COUNTED = 0.9
const LOOK_MS = 5
const ROLES: Readonly<Record<number, readonly string[]>> = {
  1: ['api,ingest,replay,watch'],
  // The ingest starts last, so that the start of the others does not slow it.
  4: ['api', 'replay', 'watch', 'ingest'],
}
const NAME = 'live'

export async function openRoles({ quick }: Overrides): Promise<Stage> {
  await dropLeftovers()
  const target = await ownTarget()
  const deadLetters = `${target.queue}.dlq`
  await target.channel.assertQueue(deadLetters, {
    durable: true,
    arguments: { 'x-queue-type': 'quorum' },
  })
  return {
    measure: (size) => round(target, deadLetters, size, quick ? QUICK_LETTERS : LETTERS),
    async close() {
      await target.channel.deleteQueue(deadLetters)
      await target.close()
    },
  }
}

async function round(
  target: Target,
  deadLetters: string,
  size: number,
  count: number,
): Promise<Costs> {
  const { url, queue, channel } = target
  await target.empty()
  for (let sent = 0; sent < count; sent += 1) {
    channel.sendToQueue(deadLetters, bodyOf(sent), { persistent: true, messageId: `b-${sent}` })
    if (sent % 1_000 === 999) await channel.waitForConfirms()
  }
  await channel.waitForConfirms()
  const database = await ownDatabase()
  const programs: Program[] = []
  try {
    const config = {
      database: { url: database.url },
      auth: { development: {} },
      migrate: true,
      sources: { [NAME]: { rabbitmq: { url, queue, deadLetterQueues: [deadLetters] } } },
    }
    for (const roles of ROLES[size] ?? []) programs.push(await startServer(roles, config))
    const ingest = await timeOf(count, () => ingestedCount(database.pool))
    await approved(database.pool)
    const replay = await timeOf(count, async () => (await channel.checkQueue(queue)).messageCount)
    return { ingest: [ingest], replay: [replay] }
  } finally {
    await Promise.all(programs.map((one) => one.stop()))
    await database.drop()
    await channel.purgeQueue(deadLetters)
  }
}

/** Returns the time of one in µs, from a tenth of them to all of them. */
async function timeOf(count: number, done: () => Promise<number>): Promise<number> {
  const endsAt = performance.now() + 4 * PATIENCE_MS
  let first: { readonly at: number; readonly count: number } | undefined
  for (;;) {
    const now = await done()
    const at = performance.now()
    if (first === undefined && now >= count * (1 - COUNTED)) first = { at, count: now }
    if (now >= count && first !== undefined && first.count < count)
      return ((at - first.at) * 1_000) / (count - first.count)
    if (now >= count || at > endsAt) throw new Error(`${now} of ${count} were done.`)
    await sleep(LOOK_MS)
  }
}

async function ingestedCount(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    'select coalesce(sum(count), 0)::int as count from redrive_catalog.failure_group',
  )
  return rows[0]?.count ?? 0
}

/** Approves all dead letters in one run at full speed. */
async function approved(pool: Pool): Promise<void> {
  const { replays } = catalog({ pool })
  const { id, hash } = await replays.plan({
    selection: { query: { after: 0, sources: [NAME] } },
    by: 'bench',
    ratePerSecond: 10_000,
    canary: [],
    onUnconfirmed: 'continue',
    maxAge: '7d',
    proof: 'returns',
  })
  await replays.approve(id, { hash, by: 'another' })
}
