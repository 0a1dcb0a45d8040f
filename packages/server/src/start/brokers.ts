import { type DeadLetterSource, withTimeout } from '@redrive/runtime'
import type { BrokerKind } from '../config/source.ts'
import type { Log } from './log.ts'

export interface WatchedSource {
  /** As the config names it. */
  readonly name: string
  readonly kind: BrokerKind
  readonly source: Pick<DeadLetterSource, 'depth'>
}

export interface BrokerState {
  readonly name: string
  readonly kind: BrokerKind
  /** Undefined: not known yet. */
  readonly isAnswering: boolean | undefined
}

export interface BrokerWatch {
  states(): readonly BrokerState[]
  stop(): void
}

/** 15 s between two looks: soon enough for people, and nothing for a broker. */
const LOOK_MS = 15_000
/** 10 s: as long as a connection takes to be refused for good. */
const ANSWER_MS = 10_000

/**
 * Looks whether brokers answer, and says so when that changes. Only for people: the work itself goes on
 * trying by its own rules, and the other sources do not wait for it.
 */
export function watchBrokers(sources: readonly WatchedSource[], log: Log): BrokerWatch {
  const answering = new Map<string, boolean>()
  const look = ({ name, kind, source }: WatchedSource) =>
    withTimeout(source.depth(), ANSWER_MS, noAnswer).then(
      () => note(name, () => log.info({ source: name }, `The ${kind} of ${name} answers.`), true),
      (error: unknown) =>
        note(name, () => log.warn({ source: name }, silent(name, kind, error)), false),
    )
  const note = (name: string, say: () => void, isAnswering: boolean) => {
    if (answering.get(name) !== isAnswering) say()
    answering.set(name, isAnswering)
  }
  const lookAtAll = () => void Promise.all(sources.map(look))
  lookAtAll()
  const timer = setInterval(lookAtAll, LOOK_MS)
  return {
    states: () =>
      sources.map(({ name, kind }) => ({ name, kind, isAnswering: answering.get(name) })),
    stop: () => clearInterval(timer),
  }
}

function silent(name: string, kind: BrokerKind, error: unknown): string {
  const why = error instanceof Error ? error.message : String(error)
  return `The ${kind} of ${name} does not answer: ${why}. Its dead letters wait there; it is tried again.`
}

function noAnswer(): never {
  throw new Error(`no answer within ${ANSWER_MS / 1_000} s`)
}
