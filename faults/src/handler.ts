import { setTimeout as after } from 'node:timers/promises'
import type { Awaitable, Handler } from '@redrive/runtime'
import type { HistoryWriter } from './history.ts'
import type { Body } from './message.ts'

/** The rules of the domain say no. */
export class Refused extends Error {}

/** The dependency asks to be left alone for ten minutes. */
export class ComeBackLater extends Error {}

/** As Node reports a dependency that is down. */
function unreachable(): Error {
  return Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
}

export interface HandlerParts<Tx> {
  readonly workMs: number
  readonly isDependencyDown?: boolean
  readonly history: HistoryWriter
  readonly die: (where: string) => never
  /** How often the message has run, this time included, whatever became of it. */
  readonly countRun: (id: string) => Promise<number>
  /** In the transaction of the inbox. */
  readonly takeEffect: (id: string, tx: Tx) => Awaitable<unknown>
}

/** Does what the message asks for, and writes down that it began. */
export function handlerOf<Tx>(parts: HandlerParts<Tx>): Handler<Body, Tx> {
  const { history, workMs, die } = parts
  return async ({ body }, { attempt, tx }) => {
    const { id } = body
    history.write({ what: 'handler_started', id, attempt })
    if (body.kind === 'killer') die('handler')
    // At least half of it: where much must be in hand, no handler is done at once.
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
  { countRun, isDependencyDown = false }: HandlerParts<Tx>,
): Promise<Error | undefined> {
  switch (kind) {
    case 'flaky':
      // Counted outside: while the dependency is thought sick, our own count stands still.
      return (await countRun(id)) <= failures ? unreachable() : undefined
    case 'outage':
      return isDependencyDown ? unreachable() : undefined
    case 'business':
      return new Refused('the order was cancelled')
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
