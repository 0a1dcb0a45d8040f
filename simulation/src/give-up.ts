import { decodeHeaders, formatDuration, seededRandom } from '@redrive/core'
import { MemoryBroker, memory, send } from '@redrive/memory'
import { consume } from '@redrive/runtime'
import { VirtualTime } from '@redrive/storm/internal'
import { playBadMessages } from './bad-messages.ts'
import {
  DAY,
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

const ARRIVALS = {
  '1 a day': DAY,
  '10 a day': DAY / 10,
  '1 an hour': HOUR,
  '12 an hour': HOUR / 12,
  '1 a minute': MINUTE,
  '6 a minute': MINUTE / 6,
  '1 a second': SECOND,
} as const

const KINDS: readonly FailureKind[] = [
  'dead host',
  'generic error',
  'short wait',
  'client timeout',
  'never settles',
  'business',
]
const OUTAGES: readonly number[] = [0, 30 * SECOND, 5 * MINUTE, HOUR, 6 * HOUR]

/** The limits that every row must meet. */
const LIMITS = {
  /** Longest outage in which no good message may be given up. */
  outageMs: HOUR,
  deadLetterMs: 65 * MINUTE,
  runs: 25,
  /** No dead letter sooner than this without proof. */
  unprovenMs: 60 * SECOND,
  /** Latest first line of the log. */
  warningMs: 5 * MINUTE,
} as const

/** Time after the outage: long enough that a message of the outage is handled or given up. */
const AFTER_MS = 3 * HOUR

interface Row {
  readonly arrivals: keyof typeof ARRIVALS
  readonly kind: FailureKind
  readonly outageMs: number
}

interface RowResult {
  /** Time from the first failure of the failing message to the first line of the log; undefined when there is none. */
  readonly warningMs: number | undefined
  /** Time from the first failure of the failing message to its dead letter; undefined when there is none. */
  readonly deadLetterMs: number | undefined
  readonly reason: string | undefined
  /** Runs of the failing message. */
  readonly runs: number
  readonly falseDeadLetters: number
  /** A good message passed between the first failure and the dead letter. */
  readonly isProven: boolean
}

export interface GiveUpCommand {
  /** Whether to play one seed instead of several. */
  readonly quick: boolean
  readonly print: (text: string) => void
}

const SEEDS = 5

/** Plays one permanently failing message among good ones, in every row. Returns true when all limits hold. */
export async function runGiveUp({ quick, print }: GiveUpCommand): Promise<boolean> {
  print(lineOf(HEADER, COLUMNS))
  const short: string[] = []
  for (const row of rows()) {
    const results: RowResult[] = []
    for (let seed = 1; seed <= (quick ? 1 : SEEDS); seed++) results.push(await play(row, seed))
    print(rowText(row, results))
    short.push(...results.flatMap((result) => shortcomings(row, result)))
  }
  print('')
  const { rows: badRows, short: badShort } = await playBadMessages({ quick, print })
  short.push(...badShort)
  for (const text of short) print(text)
  const isGood = short.length === 0
  print(
    `${isGood ? 'PASS' : 'SHORT'} give-up ${short.length} limits missed in ${rows().length + badRows} rows, goal 0`,
  )
  return isGood
}

function rows(): readonly Row[] {
  const arrivals = Object.keys(ARRIVALS) as (keyof typeof ARRIVALS)[]
  return arrivals.flatMap((one) =>
    KINDS.flatMap((kind) => OUTAGES.map((outageMs) => ({ arrivals: one, kind, outageMs }))),
  )
}

const FAILING = 'failing'

/** A rejection is about one message. In an outage the messages of that row find a dead host. */
const inOutage = (kind: FailureKind): FailureKind => (kind === 'business' ? 'dead host' : kind)

async function play({ arrivals, kind, outageMs }: Row, seed: number): Promise<RowResult> {
  const random = seededRandom(seed)
  const time = new VirtualTime(random)
  const broker = new MemoryBroker({ clock: time })
  const startedAt = time.now()
  const intervalMs = ARRIVALS[arrivals]
  // The failing message comes at a random time between two good ones, at the beginning of the outage.
  const failingAt = startedAt + intervalMs + random() * intervalMs
  const end = failingAt + Math.max(outageMs, LIMITS.deadLetterMs) + AFTER_MS
  const outageUntil = failingAt + outageMs
  const isOutage = () => time.now() >= failingAt && time.now() < outageUntil
  const failInOutage = () =>
    kind === 'never settles'
      ? new Promise((_, reject) => {
          time.after(outageUntil - time.now(), () => reject(new Error('socket hang up')))
        })
      : fail(inOutage(kind), time)
  let runs = 0
  let firstRunAt: number | undefined
  let warnedAt: number | undefined
  const onLine = () => {
    if (firstRunAt !== undefined) warnedAt ??= time.now()
  }
  const passedAt: number[] = []
  await consume(
    memory({ broker, queue: QUEUE }),
    async ({ id }: { id: string }) => {
      if (id === FAILING) {
        firstRunAt ??= time.now()
        runs += 1
        await fail(isOutage() ? inOutage(kind) : kind, time)
      }
      if (isOutage()) await failInOutage()
      passedAt.push(time.now())
    },
    { clock: time, random, logger: { warn: onLine, error: onLine } },
  )
  const put = (id: string) => send(broker, QUEUE, { id }, { id })
  const arrive = (number: number, at: number) => {
    if (at > end) return
    time.after(at - time.now(), () => {
      put(`good-${number}`)
      arrive(number + 1, at + intervalMs)
    })
  }
  arrive(1, startedAt)
  time.after(failingAt - time.now(), () => put(FAILING))
  let givenUpAt: number | undefined
  while (await time.step(end)) {
    if (givenUpAt === undefined && givenUp(broker).some(({ id }) => id === FAILING)) {
      givenUpAt = time.now()
    }
  }
  const letters = givenUp(broker)
  const letter = letters.find(({ id }) => id === FAILING)
  broker.close()
  const since = firstRunAt ?? failingAt
  return {
    warningMs: warnedAt === undefined ? undefined : warnedAt - since,
    deadLetterMs: givenUpAt === undefined ? undefined : givenUpAt - since,
    reason: letter === undefined ? undefined : decodeHeaders(letter.headers).reason,
    runs,
    falseDeadLetters: letters.filter(({ id }) => id !== FAILING).length,
    isProven:
      kind === 'business' ||
      passedAt.some((at) => at >= since && givenUpAt !== undefined && at <= givenUpAt),
  }
}

function shortcomings(row: Row, result: RowResult): readonly string[] {
  const { warningMs, deadLetterMs, runs, falseDeadLetters, isProven } = result
  const name = `${row.arrivals}, ${row.kind}, outage of ${formatDuration(row.outageMs)}`
  const short: string[] = []
  if (!(warningMs !== undefined && warningMs <= LIMITS.warningMs)) {
    short.push(`${name}: first warning after ${timeText(warningMs)}`)
  }
  if (row.outageMs <= LIMITS.outageMs && falseDeadLetters > 0) {
    short.push(`${name}: ${falseDeadLetters} good messages given up`)
  }
  if (row.outageMs === 0 && !(deadLetterMs !== undefined && deadLetterMs <= LIMITS.deadLetterMs)) {
    short.push(`${name}: dead letter after ${timeText(deadLetterMs)}`)
  }
  if (row.outageMs === 0 && runs > LIMITS.runs) short.push(`${name}: ${runs} runs`)
  if (!isProven && deadLetterMs !== undefined && deadLetterMs < LIMITS.unprovenMs) {
    short.push(`${name}: dead letter after ${timeText(deadLetterMs)} without proof`)
  }
  return short
}

const COLUMNS = [12, 16, 9, 16, 20, 8, 7, 20] as const
const HEADER = [
  'ARRIVALS',
  'FAILURE',
  'OUTAGE',
  'FIRST WARNING',
  'DEAD LETTER AFTER',
  'RUNS',
  'FALSE',
  'REASON',
]

function rowText({ arrivals, kind, outageMs }: Row, results: readonly RowResult[]): string {
  const most = (pick: (result: RowResult) => number) => Math.max(...results.map(pick))
  const latest = (pick: (result: RowResult) => number | undefined) =>
    timeText(most((result) => pick(result) ?? Number.POSITIVE_INFINITY))
  const cells = [
    arrivals,
    kind,
    outageMs === 0 ? 'none' : formatDuration(outageMs),
    latest(({ warningMs }) => warningMs),
    latest(({ deadLetterMs }) => deadLetterMs),
    String(most(({ runs }) => runs)),
    String(most(({ falseDeadLetters }) => falseDeadLetters)),
    [...new Set(results.map(({ reason }) => reason ?? '-'))].join(' '),
  ]
  return lineOf(cells, COLUMNS)
}
