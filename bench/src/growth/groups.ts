// A catalog with many failure groups, one dead letter in each.
import { type Catalog, catalog, migrate } from '@redrive/catalog'
import { seededRandom } from '@redrive/testing'
import { lettersAt, listed } from '../catalog/letters.ts'
import type { Overrides } from '../comparison.ts'
import { dropLeftovers, ownDatabase, poolOf } from '../postgres/database.ts'
import { repeatedly } from './measuring.ts'
import { progress } from './progress.ts'
import type { Stage } from './subject.ts'

const TIMES = 40
const QUICK_TIMES = 10
/** Dead letters of one ingest, as between two polls. */
const BATCH = 100
const FILL_BATCH = 1_000
/** Connections of a server to its database, by default. */
const POOL = 15
/** Half of the most groups that a source may have. Above it, groups without dead letters end earlier. */
const GROUPS_PER_SOURCE = 5_000
/** Numbers of measured dead letters begin here, above all numbers that fill the catalog. */
const FIRST_MEASURED = 1_000_000

interface World {
  readonly made: Catalog
  /** Number of groups in the catalog. */
  groups: number
  next: number
}

/** Grows one catalog: each size adds the groups that are missing. */
export async function openGroups({ quick, seed = 1 }: Overrides): Promise<Stage> {
  await dropLeftovers()
  const database = await ownDatabase()
  const pool = poolOf(database.url, { max: POOL })
  await migrate(pool)
  const world: World = { made: catalog({ pool }), groups: 0, next: FIRST_MEASURED }
  const random = seededRandom(seed)
  const times = quick ? QUICK_TIMES : TIMES
  return {
    async measure(size) {
      await filledTo(world, size)
      await pool.query('vacuum analyze')
      const { made } = world
      return {
        ingest: await repeatedly(times, () => ingested(world, random.int(size))),
        page: await repeatedly(times, () => made.groups()),
        overview: await repeatedly(times, () => made.counts()),
      }
    },
    async close() {
      await pool.end()
      await database.drop()
    },
  }
}

async function filledTo(world: World, size: number): Promise<void> {
  for (let first = world.groups; first < size; ) {
    const source = Math.floor(first / GROUPS_PER_SOURCE)
    const end = Math.min(size, first + FILL_BATCH, (source + 1) * GROUPS_PER_SOURCE)
    const letters = lettersAt(first, end - first, Date.now(), (number) => number)
    await added(world.made, sourceOf(source), letters)
    first = end
  }
  world.groups = size
  progress(`groups: the catalog has ${size.toLocaleString('en')} groups`)
}

/** Ingests a batch of existing groups: neighbours of one source, as in an incident. */
async function ingested(world: World, start: number): Promise<void> {
  const source = Math.floor(start / GROUPS_PER_SOURCE)
  const firstGroup = source * GROUPS_PER_SOURCE
  const inSource = Math.min(GROUPS_PER_SOURCE, world.groups - firstGroup)
  const groupOf = (number: number) => firstGroup + ((start + number) % inSource)
  const letters = lettersAt(world.next, BATCH, Date.now(), groupOf)
  world.next += BATCH
  await added(world.made, sourceOf(source), letters)
}

const sourceOf = (number: number) => `orders-${number}`

/** Ingests dead letters that the catalog does not have. */
export async function added(
  made: Catalog,
  source: string,
  letters: ReturnType<typeof lettersAt>,
): Promise<void> {
  const result = await made.ingest(listed(letters), { name: source, batch: FILL_BATCH })
  if (result.added !== letters.length)
    throw new Error(`The ingest added ${result.added} of ${letters.length} dead letters.`)
}
