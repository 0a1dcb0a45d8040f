import type { DeadLetterSource } from '@redrive/runtime'
import { withTimeout } from '@redrive/runtime/internal'
import type { BrokerKind } from '../config/source.ts'
import type { Log } from './log.ts'

export interface WatchedSource {
  /** Name in the config. */
  readonly name: string
  readonly kind: BrokerKind
  readonly source: Pick<DeadLetterSource, 'depth'>
}

export interface BrokerState {
  readonly name: string
  readonly kind: BrokerKind
  /** Undefined until the first check ends. */
  readonly isAnswering: boolean | undefined
}

export interface BrokerWatch {
  states(): readonly BrokerState[]
  stop(): void
}

/** 15 s between two checks: early enough for operators, and almost no load for a broker. */
const CHECK_INTERVAL_MS = 15_000
/** 10 s: the longest time that a connection attempt needs to fail. */
const CHECK_TIMEOUT_MS = 10_000

/**
 * Checks whether the brokers are reachable and logs every change. It is for operators only: background jobs
 * retry independently, and the other sources do not wait.
 */
export function watchBrokers(sources: readonly WatchedSource[], log: Log): BrokerWatch {
  const answering = new Map<string, boolean>()
  const check = ({ name, kind, source }: WatchedSource) =>
    withTimeout(source.depth(), CHECK_TIMEOUT_MS, throwTimeout).then(
      () => record(name, () => log.info({ source: name }, reachableText(name, kind)), true),
      (error: unknown) =>
        record(name, () => log.warn({ source: name }, unreachableText(name, kind, error)), false),
    )
  const record = (name: string, logChange: () => void, isAnswering: boolean) => {
    if (answering.get(name) !== isAnswering) logChange()
    answering.set(name, isAnswering)
  }
  const checkAll = () => void Promise.all(sources.map(check))
  checkAll()
  const timer = setInterval(checkAll, CHECK_INTERVAL_MS)
  return {
    states: () =>
      sources.map(({ name, kind }) => ({ name, kind, isAnswering: answering.get(name) })),
    stop: () => clearInterval(timer),
  }
}

const reachableText = (name: string, kind: BrokerKind) => `Source "${name}": ${kind} is reachable.`

function unreachableText(name: string, kind: BrokerKind, error: unknown): string {
  const reason = error instanceof Error ? error.message : String(error)
  return `Source "${name}": ${kind} is not reachable: ${reason}. Its dead letters stay in the broker; the server tries again.`
}

function throwTimeout(): never {
  throw new Error(`no response within ${CHECK_TIMEOUT_MS / 1_000} s`)
}
