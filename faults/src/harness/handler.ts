import { setTimeout as after } from 'node:timers/promises'
import type { Awaitable, Handler } from '@redrive/runtime'
import type { HistoryWriter } from '../evidence/history.ts'
import type { Body } from '../evidence/message.ts'

/** An error of a business rule. */
export class Refusal extends Error {}

/** The dependency requests a pause of ten minutes. */
export class ComeBackLater extends Error {}

/** Returns an error as Node reports it for a dependency that is down. */
function unreachable(): Error {
  return Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
}

export interface HandlerDeps<Tx> {
  readonly workMs: number
  readonly isDependencyDown?: boolean
  readonly history: HistoryWriter
  readonly die: (where: string) => never
  /** Number of runs of the message, this one included, whatever their outcome. */
  readonly countRun: (id: string) => Promise<number>
  /** Called in the transaction of the inbox. */
  readonly takeEffect: (id: string, tx: Tx) => Awaitable<unknown>
}

/** Returns a handler that does what the message requests and records its start. */
export function handlerOf<Tx>(parts: HandlerDeps<Tx>): Handler<Body, Tx> {
  const { history, workMs, die } = parts
  return async ({ body }, { attempt, tx }) => {
    const { id } = body
    history.write({ what: 'handler_started', id, attempt })
    if (body.kind === 'killer') die('handler')
    // At least half of the time. When many messages must be in flight, no handler may finish
    // immediately.
    if (workMs > 0) await after((workMs * (1 + Math.random())) / 2)
    const failure = await failureOf(body, attempt, parts)
    if (failure !== undefined) {
      history.write({ what: 'failed', id, attempt })
      throw failure
    }
    await parts.takeEffect(id, tx)
  }
}

async function failureOf<Tx>(
  { id, kind, failures }: Body,
  attempt: number,
  { countRun, isDependencyDown = false }: HandlerDeps<Tx>,
): Promise<Error | undefined> {
  switch (kind) {
    case 'flaky':
      // Counted in the database. While the dependency counts as unhealthy, Redrive's own attempt
      // count does not grow.
      return (await countRun(id)) <= failures ? unreachable() : undefined
    case 'outage':
      return isDependencyDown ? unreachable() : undefined
    case 'business':
    case 'large':
      return new Refusal('the order was cancelled')
    case 'repeats':
      return new Error('cannot read properties of undefined')
    case 'soon':
      return attempt === 1 ? unreachable() : undefined
    case 'later':
      return attempt === 1 ? new ComeBackLater('not today') : undefined
    case 'good':
    case 'killer':
      return undefined
  }
}
