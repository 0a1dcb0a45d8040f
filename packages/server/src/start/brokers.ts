import { hostname } from 'node:os'
import { setTimeout as after } from 'node:timers/promises'
import type { SourceCheck } from '@redrive/catalog'
import type { DeadLetterSource, DrainedQueue } from '@redrive/runtime'
import { withTimeout } from '@redrive/runtime/internal'
import type { BrokerKind } from '../config/source.ts'
import type { Log } from './log.ts'

export interface WatchedSource {
  /** Name in the config. */
  readonly name: string
  readonly kind: BrokerKind
  readonly source: Pick<DeadLetterSource, 'depth' | 'lag' | 'queues'>
}

export interface BrokerState {
  readonly name: string
  readonly kind: BrokerKind
  /** Undefined until the first check ends. */
  readonly isAnswering: boolean | undefined
  /** Names of the queues or topics that do not exist. */
  readonly missing: readonly string[]
  /** Number of dead letters that wait in the broker; undefined if it is unknown. */
  readonly depth: number | undefined
  /** Number of messages that wait for the consumers; undefined if it is unknown. */
  readonly lag: number | undefined
}

export interface BrokerWatch {
  states(): readonly BrokerState[]
  /** Resolves when every source was checked once. */
  readonly firstCheck: Promise<void>
  stop(): void
}

export interface BrokerWatchOptions {
  readonly log: Log
  /** Stores each check, so that every process can report it. Resolves to false if the source is not known yet. */
  readonly store: (check: SourceCheck) => Promise<boolean>
}

/** 15 s between two checks: early enough for operators, and almost no load for a broker. */
const CHECK_INTERVAL_MS = 15_000
/** 1 s: an ingest starts within seconds. */
const STORE_RETRY_MS = 1_000
/** 10 s: the longest time that a connection attempt needs to fail. */
const CHECK_TIMEOUT_MS = 10_000

/**
 * Checks whether the brokers are reachable and their queues exist, and logs every change. It is for operators only:
 * background jobs retry independently, and the other sources do not wait.
 */
export function watchBrokers(
  sources: readonly WatchedSource[],
  { log, store }: BrokerWatchOptions,
): BrokerWatch {
  const found = new Map<string, SourceCheck>()
  const self = processName()
  let isStopped = false
  const check = async (one: WatchedSource) => {
    const result = { ...(await checked(one)), source: one.name, process: self }
    logChange(log, one, found.get(one.name), result)
    found.set(one.name, result)
    void keep(result)
  }
  // The first ingest adds the source to the catalog, shortly after the first check.
  const keep = async (result: SourceCheck) => {
    while (!isStopped && found.get(result.source) === result) {
      try {
        if (await store(result)) return
      } catch (error) {
        log.debug({ err: error }, `Cannot store the check of source "${result.source}".`)
        return
      }
      await after(STORE_RETRY_MS, undefined, { ref: false })
    }
  }
  const checkAll = async () => void (await Promise.all(sources.map(check)))
  const firstCheck = checkAll()
  const timer = setInterval(() => void checkAll(), CHECK_INTERVAL_MS)
  return {
    states: () => sources.map(({ name, kind }) => stateOf(name, kind, found.get(name))),
    firstCheck,
    stop: () => {
      isStopped = true
      clearInterval(timer)
    },
  }
}

/** Returns the name of this process for operators: host and process id. */
const processName = () => `${hostname()}:${process.pid}`

const stateOf = (name: string, kind: BrokerKind, found: SourceCheck | undefined): BrokerState => ({
  name,
  kind,
  isAnswering: found === undefined ? undefined : found.unreachable === undefined,
  missing: found?.missing ?? [],
  depth: found?.depth,
  lag: found?.lag,
})

type Checked = Pick<SourceCheck, 'unreachable' | 'missing' | 'depth' | 'lag'>

async function checked({ source }: WatchedSource): Promise<Checked> {
  try {
    return await withTimeout(readState(source), CHECK_TIMEOUT_MS, throwTimeout)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    // An address may contain a password.
    const unreachable = reason.replaceAll(/\/\/[^@/\s]*@/g, '//***@')
    return { unreachable, missing: [], depth: undefined, lag: undefined }
  }
}

async function readState(source: WatchedSource['source']): Promise<Checked> {
  const queues = await source.queues?.()
  const missing = queues?.filter(({ depth }) => depth === undefined) ?? []
  return {
    unreachable: undefined,
    missing: missing.map(({ name }) => name),
    depth: queues === undefined ? await source.depth() : sumOf(queues),
    lag: await source.lag?.(),
  }
}

/** Returns the sum; undefined if no queue exists, because 0 would look like an empty queue. */
function sumOf(queues: readonly DrainedQueue[]): number | undefined {
  const depths = queues.flatMap(({ depth }) => depth ?? [])
  return depths.length === 0 ? undefined : depths.reduce((sum, depth) => sum + depth, 0)
}

function logChange(
  log: Log,
  { name, kind }: WatchedSource,
  before: SourceCheck | undefined,
  { unreachable, missing }: SourceCheck,
): void {
  const isSame =
    before !== undefined &&
    (before.unreachable === undefined) === (unreachable === undefined) &&
    before.missing.join() === missing.join()
  if (isSame) return
  const about = { source: name }
  if (unreachable !== undefined) log.warn(about, unreachableText(name, kind, unreachable))
  else if (missing.length > 0) log.warn(about, `Source "${name}": ${missingText(name, missing)}`)
  else log.info(about, `Source "${name}": ${kind} is reachable.`)
}

const unreachableText = (name: string, kind: BrokerKind, reason: string) =>
  `Source "${name}": ${kind} is not reachable: ${reason}. Its dead letters stay in the broker; the server tries again.`

/** Describes missing queues or topics, and what to do. */
export const missingText = (source: string, missing: readonly string[]): string =>
  `${missing.map((one) => `"${one}"`).join(', ')} ${missing.length === 1 ? 'does' : 'do'} not exist in the broker. Check the names in sources.${source} of the config, or start a consumer, which creates them.`

function throwTimeout(): never {
  throw new Error(`no response within ${CHECK_TIMEOUT_MS / 1_000} s`)
}
