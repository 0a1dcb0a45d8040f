import type { Decision } from '@redrive/core'
import { isReply } from '@redrive/redis-internal'
import {
  type Destination,
  type Enactment,
  LOST,
  movedTo,
  SETTLED,
  serializeConfirmation,
  type TransportNeeds,
} from '@redrive/runtime'
import { copyOf, type Field, QUARANTINED, type RedisStreamDelivery } from './delivery.ts'
import type { EndResult, EntryEnd, Member, Target } from './server.ts'
import type { Topology } from './topology.ts'

/** 14 days: a control plane that was stopped for longer gets the outcome from the inbox or an operator. */
const CONFIRMATIONS_MS = 1_209_600_000

/** Ten years. A longer retention is none. */
const MAX_RETENTION_MS = 315_360_000_000

/** Returns the retention of dead letters in ms; 0: no limit. */
export function retentionOf(needs: TransportNeeds | undefined): number {
  const retentionMs = needs?.deadLetterRetentionMs ?? Number.POSITIVE_INFINITY
  return retentionMs > MAX_RETENTION_MS ? 0 : Math.max(1, retentionMs)
}

export interface EnactDeps {
  readonly member: Member
  readonly topology: Topology
  readonly handler: string | undefined
  /** Retention of dead letters in ms; 0: no limit. */
  readonly retentionMs: number
  /** Ends the claim together with others. */
  readonly end: (end: EntryEnd) => Promise<EndResult>
  readonly now: () => number
  /** Whether the result of an earlier request is unknown. A claim that has ended shows that it was applied. */
  readonly isRepeated: boolean
}

/** Enacts a decision: ends the claim, or stores a copy and ends the claim in one script. */
export async function enactOn(
  delivery: RedisStreamDelivery,
  decision: Decision,
  deps: EnactDeps,
): Promise<Enactment> {
  try {
    return await enact(delivery, decision, deps)
  } catch (error) {
    const isRefused = REFUSALS.some((code) => isReply(error, code))
    return isRefused ? { kind: 'refused', error, isTooLarge: false } : { kind: 'unknown', error }
  }
}

/** Replies after which the server has changed nothing. */
const REFUSALS = ['OOM', 'READONLY', 'MISCONF', 'NOREPLICAS', 'LOADING', 'CLUSTERDOWN', 'NOPERM']

async function enact(
  delivery: RedisStreamDelivery,
  decision: Decision,
  deps: EnactDeps,
): Promise<Enactment> {
  const { entry, replayId } = delivery
  switch (decision.kind) {
    case 'pause': {
      const result = await deps.end({ what: 'return', entry })
      if (result !== 'trimmed') return resultOf(result, movedTo('returned'), deps)
      return handOff(delivery, copyToOwn(delivery, deps), movedTo('returned'), deps)
    }
    case 'settle':
    case 'drop': {
      const done = decision.kind === 'settle' ? SETTLED : movedTo('dropped')
      if (replayId !== undefined) {
        const report = serializeConfirmation(delivery, decision, deps.now())
        return handOff(delivery, confirmation(report, deps), done, deps)
      }
      return resultOf(await deps.end({ what: 'done', entry }), done, deps)
    }
    default:
      return copyAway(delivery, decision, deps)
  }
}

async function handOff(
  { entry }: RedisStreamDelivery,
  target: Target,
  done: Enactment,
  deps: EnactDeps,
): Promise<Enactment> {
  return resultOf(await deps.member.handOff(entry, target), done, deps)
}

const resultOf = (result: EndResult, done: Enactment, { isRepeated }: EnactDeps): Enactment =>
  result === 'done' || (result === 'ended' && isRepeated) ? done : LOST

/** Returns a copy of a trimmed message for the stream of the group: the server cannot return the message itself. */
function copyToOwn(delivery: RedisStreamDelivery, { topology }: EnactDeps): Target {
  const { fields } = copyOf(delivery, { cycle: delivery.cycle })
  return { target: topology.own, kind: 'stream', ms: 0, fields }
}

const confirmation = (report: Buffer, { topology }: EnactDeps): Target => ({
  target: topology.replayed,
  kind: 'stream',
  ms: CONFIRMATIONS_MS,
  fields: ['redrive-body', report],
})

function copyAway(
  delivery: RedisStreamDelivery,
  decision: Extract<Decision, { kind: 'retryAt' | 'deadLetter' | 'quarantine' }>,
  deps: EnactDeps,
): Promise<Enactment> {
  const { topology, handler, retentionMs } = deps
  const { cycle, reason, failure } = decision
  if (decision.kind === 'retryAt') {
    const { fields, truncated } = copyOf(delivery, { cycle, reason })
    const ms = Math.max(0, decision.delayMs)
    const target: Target = { target: topology.retry, kind: 'retry', ms, fields }
    return handOff(delivery, target, movedTo('retry', truncated, topology.retry), deps)
  }
  const { fields, truncated } = copyOf(delivery, { cycle, reason, handler, stack: failure?.stack })
  const isQuarantined = decision.kind === 'quarantine'
  const place: Destination = isQuarantined ? 'quarantine' : 'dead_letter'
  const marked: readonly Field[] = isQuarantined ? [...fields, QUARANTINED, '1'] : fields
  const target: Target = {
    target: topology.deadLetters,
    kind: 'stream',
    ms: retentionMs,
    fields: marked,
  }
  return handOff(delivery, target, movedTo(place, truncated, topology.deadLetters), deps)
}
