// Mixed reads of users at a fixed rate, whether or not the responses keep up.
import { migrate as migrateOutbox } from '@redrive/postgres'
import { type SeededRandom, seededRandom } from '@redrive/testing'
import { DAYS, type Filled } from '../catalog/filled.ts'
import type { Program } from './programs.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** A kind of request. */
interface Mixed {
  readonly name: string
  /** Share in 100 requests. */
  readonly share: number
  readonly path: (world: World, random: SeededRandom) => string
}

/** A filled catalog that a server serves. */
export interface World extends Filled {
  /** Ids of some dead letters. */
  readonly ids: readonly string[]
}

const groupOf = ({ groups }: World, random: SeededRandom) => groups[random.int(groups.length)] ?? ''
const hourOf = ({ start }: World, random: SeededRandom) =>
  start + HOUR_MS + random.int(DAYS * DAY_MS - 3 * HOUR_MS)

export const MIX: readonly Mixed[] = [
  { name: 'overview', share: 10, path: () => 'overview' },
  { name: 'groups', share: 20, path: () => 'groups?hasOpen=true&order=open_count' },
  { name: 'one group', share: 10, path: (w, r) => `groups/${groupOf(w, r)}` },
  {
    name: 'page of a group',
    share: 20,
    path: (w, r) => `dead-letters?filter=group:${groupOf(w, r)}`,
  },
  {
    name: 'page of an hour',
    share: 10,
    path(world, random) {
      const after = hourOf(world, random)
      return `dead-letters?filter=after:${after}%20before:${after + HOUR_MS}`
    },
  },
  {
    name: 'by key',
    share: 10,
    path: ({ count }, random) => `dead-letters?filter=key:m-${random.int(count)}`,
  },
  // With its body. The audit log gets an entry before the body is shown.
  {
    name: 'one dead letter',
    share: 10,
    path: ({ ids }, random) => `dead-letters/${ids[random.int(ids.length)]}`,
  },
  {
    name: 'trend of a group',
    share: 10,
    path(world, random) {
      const before = world.start + DAYS * DAY_MS
      return `trend?per=hour&after=${before - 7 * DAY_MS}&before=${before}&groups=${groupOf(world, random)}`
    },
  },
]

/** Reads ids for the requests, and creates the tables that a server needs next to the catalog. */
export async function worldOf(many: Filled): Promise<World> {
  const { rows } = await many.pool.query<{ id: string }>(
    'select id from redrive_catalog.dead_letter order by md5(id::text) limit 2000',
  )
  await migrateOutbox(many.pool)
  return { ...many, ids: rows.map(({ id }) => id) }
}

export interface TimedResponse {
  readonly name: string
  /** When it was due, in ms since the beginning. */
  readonly dueMs: number
  /** Time from when it was due, so it includes the wait for its turn. */
  readonly ms: number
}

export interface Load {
  readonly responses: readonly TimedResponse[]
  readonly errors: readonly string[]
  /** Memory in MB for each second, by process. */
  readonly memory: readonly (readonly number[])[]
}

export interface Asking {
  readonly seconds: number
  readonly perSecond: number
  readonly seed: number
  /** Processes whose memory is read. Default: the one that is asked. */
  readonly programs?: readonly Program[]
}

/** Sends requests for some time, and waits for all responses. */
export async function asking(
  api: Program,
  world: World,
  { seconds, perSecond, seed, programs = [api] }: Asking,
): Promise<Load> {
  const random = seededRandom(seed)
  const responses: TimedResponse[] = []
  const errors: string[] = []
  const memory = programs.map((): number[] => [])
  const inFlight = new Set<Promise<void>>()
  const beganAt = performance.now()
  const ask = async (dueMs: number) => {
    const { name, path } = drawn(random)
    const response = await fetch(`${api.url}/api/v1/${path(world, random)}`)
    const text = await response.text()
    if (response.status !== 200) errors.push(`${response.status} ${name}: ${text.slice(0, 200)}`)
    responses.push({ name, dueMs, ms: performance.now() - beganAt - dueMs })
  }
  let requested = 0
  await new Promise<void>((resolve, reject) => {
    const step = () => {
      const elapsed = performance.now() - beganAt
      for (; requested < Math.min(elapsed / 1_000, seconds) * perSecond; requested++) {
        const one = ask((requested * 1_000) / perSecond).catch((error: unknown) => {
          errors.push(String(error))
        })
        inFlight.add(one)
        void one.finally(() => inFlight.delete(one))
      }
      if ((memory[0]?.length ?? 0) < elapsed / 1_000)
        for (const [place, program] of programs.entries()) memory[place]?.push(program.memory())
      if (elapsed < seconds * 1_000) return
      clearInterval(timer)
      resolve()
    }
    const timer = setInterval(() => {
      try {
        step()
      } catch (error) {
        clearInterval(timer)
        reject(error as Error)
      }
    }, 1)
  })
  await Promise.all(inFlight)
  return { responses, errors, memory }
}

function drawn(random: SeededRandom): Mixed {
  let left = random.int(100)
  const found = MIX.find(({ share }) => {
    left -= share
    return left < 0
  })
  return found ?? (MIX[0] as Mixed)
}
