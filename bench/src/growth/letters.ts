// A catalog with many dead letters: what each operation on a few of them costs.
import { seededRandom } from '@redrive/testing'
import { DAYS, type Filled, filled } from '../catalog/filled.ts'
import { lettersAt, listed, SOURCE } from '../catalog/letters.ts'
import type { Overrides } from '../comparison.ts'
import { dropLeftovers } from '../postgres/database.ts'
import { repeatedly } from './measuring.ts'
import { progress } from './progress.ts'
import type { Costs, Stage } from './subject.ts'

const TIMES = 60
const QUICK_TIMES = 15
const BATCH = 100
const PAGE = 50
/** The smallest size has 1,000 on each day: a plan never covers more than two days. */
const PLANNED = 200
const DAY_MS = 86_400_000
/** Above all numbers of the dead letters that fill the catalog. */
const FIRST_MEASURED = 100_000_000

/** Fills a catalog for each size. */
export async function openLetters({ quick, seed = 1 }: Overrides): Promise<Stage> {
  await dropLeftovers()
  return {
    async measure(size) {
      const world = await filled(size)
      try {
        progress(
          `letters: filled in ${world.seconds.toFixed(0)} s, ${world.megabytes.toFixed(0)} MB`,
        )
        return await measured(world, quick ? QUICK_TIMES : TIMES, seed)
      } finally {
        await world.close()
      }
    },
    close: () => Promise.resolve(),
  }
}

async function measured(world: Filled, times: number, seed: number): Promise<Costs> {
  const { made, groups, count, start } = world
  const random = seededRandom(seed)
  const apartMs = (DAYS * DAY_MS) / count
  return {
    page: await repeatedly(times, () => {
      const group = groups[random.int(groups.length)] ?? ''
      return made.deadLetters({ groups: [group], limit: PAGE })
    }),
    search: await repeatedly(times, () => made.deadLetters({ key: `m-${random.int(count)}` })),
    count: await repeatedly(times, () => made.counts()),
    plan: await repeatedly(times, () => {
      const after = start + random.int(count - 2 * PLANNED) * apartMs
      return made.replays.plan({
        selection: { query: { sources: [SOURCE], after, before: after + PLANNED * apartMs } },
        by: 'bench',
        maxAge: '30d',
      })
    }),
    // Last, because it changes the catalog.
    ingest: await repeatedly(times, (turn) => ingested(world, turn)),
  }
}

async function ingested({ made }: Filled, turn: number): Promise<void> {
  const letters = lettersAt(FIRST_MEASURED + turn * BATCH, BATCH, Date.now())
  const { added } = await made.ingest(listed(letters), { extract: { order: '/order/id' } })
  if (added !== BATCH) throw new Error(`The ingest added ${added} of ${BATCH} dead letters.`)
}
