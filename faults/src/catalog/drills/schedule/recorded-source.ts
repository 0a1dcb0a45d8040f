import { randomUUID } from 'node:crypto'
import { FIRST_CYCLE } from '@redrive/core'
import type { DeadLetterSource, DrainedDeadLetter, ReplayMessage } from '@redrive/runtime'
import type { HistoryWriter } from '../../../evidence/history.ts'

/**
 * A source in memory, which records the time of every publish. Its consumers confirm nothing. The schedule of the
 * runs is under test here, not a broker.
 */
export function recordedSource(
  source: string,
  history?: HistoryWriter,
  deadLetters: readonly DrainedDeadLetter[] = [],
): DeadLetterSource {
  const waiting = [...deadLetters]
  return {
    source,
    replay: 'copy',
    async drain({ limit }) {
      const drained = waiting.splice(0, limit)
      return { deadLetters: drained, release: nothing, abandon: nothing }
    },
    async publish({ replayId }: ReplayMessage) {
      history?.write({ what: 'replay_received', id: source, replayId })
    },
    confirmations: async () => ({ confirmations: [], release: nothing, abandon: nothing }),
    depth: async () => waiting.length,
    close: nothing,
  }
}

const nothing = async () => undefined

/** Returns dead letters of one failure group. */
export const deadLettersOf = (source: string, count: number): readonly DrainedDeadLetter[] =>
  Array.from({ length: count }, (_, at) => deadLetterOf(source, Date.now() - count + at))

function deadLetterOf(source: string, at: number): DrainedDeadLetter {
  const id = randomUUID()
  const failure = {
    class: 'unknown',
    signature: SIGNATURE,
    type: 'Error',
    message: 'no price',
  } as const
  const history = [{ ...failure, number: 1, at, waitedMs: 0, code: undefined, counted: true }]
  return {
    delivery: {
      ...{ id, source, key: id, lane: undefined, type: undefined, contentType: 'application/json' },
      ...{ headers: {}, deliveryCount: 1, replayId: undefined, headerProblems: [] },
      bytes: Buffer.from(JSON.stringify({ id })),
      cycle: { ...FIRST_CYCLE, attempts: 1, firstFailedAt: at, history },
    },
    ...{ origin: source, envelope: {}, quarantined: false, class: 'unknown', identity: 'stable' },
    reason: 'attempts_exhausted',
  }
}

const SIGNATURE = '1-00000000000000aa'
