import { isRedriveError } from '@redrive/core'
import type { DeadLetterSource, DrainedDeadLetter } from '@redrive/runtime'
import type { Pool } from 'pg'
import { inTransaction, query, type RunSql } from '../database.ts'
import type { ReplayDeps } from '../replay/run/context.ts'
import { MESSAGE_MAX, storable } from '../text.ts'
import { readContent } from './read.ts'
import { APPROVED_SET_ASIDE, CLAIM_SET_ASIDE, END_SET_ASIDE_REPLAY } from './statements.ts'

interface ClaimedMessage {
  readonly id: string
  readonly bytes: number
  readonly without_headers: readonly string[]
}

/** Whether an approved message of the source waits to be published. */
export async function hasApproved(pool: Pool, name: string): Promise<boolean> {
  const { rows } = await query(pool, APPROVED_SET_ASIDE, [name])
  return rows.length > 0
}

/**
 * Publishes one approved message of a source. False: none waits. Its row stays locked until the broker confirms, so
 * two processes never publish the same one. After a crash, it is published again with the same replay id.
 */
export async function publishOneSetAside(
  deps: ReplayDeps,
  name: string,
  source: DeadLetterSource,
): Promise<boolean> {
  const ended = await inTransaction(deps.pool, async (run) => {
    const [claimed] = await run<ClaimedMessage>(CLAIM_SET_ASIDE, [[name]])
    if (claimed === undefined) return undefined
    try {
      await publish(run, deps, { name, source, claimed })
      await run(END_SET_ASIDE_REPLAY, [claimed.id, 'replayed', null])
      return { error: undefined }
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error)
      const status = isUncertain(error) ? 'replaying' : 'open'
      await run(END_SET_ASIDE_REPLAY, [claimed.id, status, storable(text, MESSAGE_MAX)])
      return { error: isUncertain(error) ? error : undefined }
    }
  })
  if (ended?.error !== undefined) throw ended.error
  return ended !== undefined
}

/** Whether the broker may have stored the message, or was not reached. Then it is published again later. */
const isUncertain = (error: unknown) =>
  isRedriveError(error, 'OUTCOME_UNKNOWN') || isRedriveError(error, 'UNREACHABLE')

async function publish(
  run: RunSql,
  { keys, origins }: ReplayDeps,
  target: {
    readonly name: string
    readonly source: DeadLetterSource
    readonly claimed: ClaimedMessage
  },
): Promise<void> {
  const { name, source, claimed } = target
  const { drained } = await readContent(run, keys, claimed)
  if (drained === undefined)
    throw new Error('An earlier release stored only the start of this message. Discard it.')
  const allowed = origins[name]
  if (allowed !== undefined && !allowed.includes(drained.origin))
    throw new Error(`The origin "${drained.origin}" is not an allowed replay target of "${name}".`)
  const deadLetter = withoutHeaders(drained, claimed.without_headers)
  await source.publish({ deadLetter, replayId: claimed.id })
}

/** Leaves out the headers that the request names, for example a stack trace that is too large to publish. */
function withoutHeaders(
  { delivery, ...rest }: DrainedDeadLetter,
  names: readonly string[],
): DrainedDeadLetter {
  const kept = Object.entries(delivery.headers).filter(([name]) => !names.includes(name))
  return { ...rest, delivery: { ...delivery, headers: Object.fromEntries(kept) } }
}
