import { seededRandom } from '@redrive/core'
import { MemoryBroker, memory, send } from '@redrive/memory'
import { consume } from '@redrive/runtime'
import { VirtualTime } from '@redrive/storm/internal'
import {
  type FailureKind,
  fail,
  givenUp,
  HOUR,
  lineOf,
  MINUTE,
  QUEUE,
  SECOND,
  timeText,
} from './give-up-parts.ts'

/** Good messages, and those that always fail although the dependency is healthy. */
interface Row {
  readonly name: string
  readonly kind: FailureKind
  /** Time between two messages. */
  readonly intervalMs: number
  /** Failing messages that come together after the first minute. */
  readonly burst: number
  /** Share of the other messages that fail. */
  readonly share: number
  /** Limit of the runs of one failing message. */
  readonly mostRuns: number
}

const RUNS = 30
/** Twenty messages that fail in the same second look like an outage at first. Runs in an outage do not count. */
const RUNS_OF_BURST = 40

// biome-ignore format: one row per case, to be read as a table
const ROWS: readonly Row[] = [
  { name: '5 among 1 a minute', kind: 'dead host', intervalMs: MINUTE, burst: 5, share: 0, mostRuns: RUNS },
  { name: '5 among 1 a minute', kind: 'generic error', intervalMs: MINUTE, burst: 5, share: 0, mostRuns: RUNS },
  { name: '20 among 1 a second', kind: 'dead host', intervalMs: SECOND, burst: 20, share: 0, mostRuns: RUNS_OF_BURST },
  { name: '20 among 1 a second', kind: 'generic error', intervalMs: SECOND, burst: 20, share: 0, mostRuns: RUNS_OF_BURST },
  { name: '10 % of 6 a minute', kind: 'dead host', intervalMs: 10 * SECOND, burst: 0, share: 0.1, mostRuns: RUNS },
  { name: '10 % of 1 a second', kind: 'dead host', intervalMs: SECOND, burst: 0, share: 0.1, mostRuns: RUNS },
  { name: '5 % of 1 a second', kind: 'client timeout', intervalMs: SECOND, burst: 0, share: 0.05, mostRuns: RUNS },
  { name: '15 % of 1 a second', kind: 'generic error', intervalMs: SECOND, burst: 0, share: 0.15, mostRuns: RUNS },
]

/** The limits that every row must meet. */
const LIMITS = {
  deadLetterMs: 65 * MINUTE,
  /** Longest time that a good message waits. */
  lagMs: 2 * MINUTE,
} as const

/** Messages arrive for this long. */
const ARRIVE_MS = HOUR
/** Then there is time until the last one is given up. */
const END_MS = ARRIVE_MS + LIMITS.deadLetterMs + MINUTE

interface RowResult {
  readonly failing: number
  readonly givenUp: number
  readonly falseDeadLetters: number
  readonly deadLetterMs: number
  readonly runs: number
  readonly lagMs: number
}

/** The figures of a burst depend on chance: the runs were 9 to 33. */
const SEEDS = 12

/** Plays several permanently failing messages among good ones. Returns the missed limits. */
export async function playBadMessages({
  quick,
  print,
}: {
  readonly quick: boolean
  readonly print: (text: string) => void
}): Promise<{ readonly rows: number; readonly short: readonly string[] }> {
  print(lineOf(HEADER, COLUMNS))
  const short: string[] = []
  for (const row of ROWS) {
    const results: RowResult[] = []
    for (let seed = 1; seed <= (quick ? 1 : SEEDS); seed++) results.push(await play(row, seed))
    const most = (pick: (result: RowResult) => number) => Math.max(...results.map(pick))
    const missing = most(({ failing, givenUp: done }) => failing - done)
    const deadLetterMs = most((result) => result.deadLetterMs)
    const runs = most((result) => result.runs)
    const lagMs = most((result) => result.lagMs)
    const wrong = most((result) => result.falseDeadLetters)
    const after = missing > 0 ? 'never' : timeText(deadLetterMs)
    const cells = [row.name, row.kind, after, String(runs), timeText(lagMs), String(wrong)]
    print(lineOf(cells, COLUMNS))
    const name = `${row.name}, ${row.kind}`
    if (missing > 0) short.push(`${name}: ${missing} failing messages not given up`)
    if (deadLetterMs > LIMITS.deadLetterMs) short.push(`${name}: dead letter after ${after}`)
    if (runs > row.mostRuns) short.push(`${name}: ${runs} runs`)
    if (lagMs > LIMITS.lagMs) short.push(`${name}: a good message waited for ${timeText(lagMs)}`)
    if (wrong > 0) short.push(`${name}: ${wrong} good messages given up`)
  }
  return { rows: ROWS.length, short }
}

const COLUMNS = [21, 16, 20, 8, 12, 7] as const
const HEADER = ['FAILING MESSAGES', 'FAILURE', 'DEAD LETTER AFTER', 'RUNS', 'GOOD LATE', 'FALSE']

async function play({ kind, intervalMs, burst, share }: Row, seed: number): Promise<RowResult> {
  const random = seededRandom(seed)
  const time = new VirtualTime(random)
  const broker = new MemoryBroker({ clock: time })
  const startedAt = time.now()
  const arrivedAt = new Map<string, number>()
  const failing = new Map<string, { firstRunAt: number; runs: number }>()
  let lagMs = 0
  await consume(
    memory({ broker, queue: QUEUE }),
    async ({ id }: { id: string }) => {
      const now = time.now()
      if (!id.startsWith('bad')) {
        lagMs = Math.max(lagMs, now - (arrivedAt.get(id) ?? now))
        arrivedAt.delete(id)
        return
      }
      const seen = failing.get(id)
      failing.set(id, { firstRunAt: seen?.firstRunAt ?? now, runs: (seen?.runs ?? 0) + 1 })
      await fail(kind, time)
    },
    { clock: time, random, logger: 'off' },
  )
  let count = 0
  const arrive = (isBad: boolean) => {
    count += 1
    const id = `${isBad ? 'bad' : 'good'}-${count}`
    arrivedAt.set(id, time.now())
    send(broker, QUEUE, { id }, { id })
  }
  const arriveNext = () => {
    if (time.now() > startedAt + ARRIVE_MS) return
    arrive(random() < share)
    time.after(intervalMs, arriveNext)
  }
  time.after(random() * intervalMs, arriveNext)
  for (let bad = 0; bad < burst; bad++) time.after(MINUTE + random() * SECOND, () => arrive(true))
  const givenUpAt = new Map<string, number>()
  while (await time.step(startedAt + END_MS)) {
    const letters = givenUp(broker)
    if (letters.length === givenUpAt.size) continue
    for (const { id } of letters) if (!givenUpAt.has(id)) givenUpAt.set(id, time.now())
  }
  broker.close()
  for (const [id, at] of arrivedAt) {
    if (!id.startsWith('bad')) lagMs = Math.max(lagMs, time.now() - at)
  }
  const bad = [...failing].map(([id, seen]) => ({ ...seen, at: givenUpAt.get(id) }))
  return {
    failing: bad.length,
    givenUp: bad.filter(({ at }) => at !== undefined).length,
    falseDeadLetters: [...givenUpAt.keys()].filter((id) => !id.startsWith('bad')).length,
    deadLetterMs: Math.max(...bad.map(({ at, firstRunAt }) => (at ?? firstRunAt) - firstRunAt)),
    runs: Math.max(...bad.map(({ runs }) => runs)),
    lagMs,
  }
}
