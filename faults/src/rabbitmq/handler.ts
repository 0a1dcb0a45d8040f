import { setTimeout as after } from 'node:timers/promises'
import type { Handler } from '@redrive/runtime'
import type { Pool } from 'pg'
import { countRun, type Effects } from '../effects.ts'
import type { HistoryWriter } from '../history.ts'
import type { Body } from '../message.ts'

/** The rules of the domain say no. */
export class Refused extends Error {}

/** The dependency asks to be left alone for ten minutes. */
export class ComeBackLater extends Error {}

/** As Node reports a dependency that is down. */
function unreachable(): Error {
  return Object.assign(new Error('connect ECONNREFUSED'), { code: 'ECONNREFUSED' })
}

export interface HandlerParts {
  readonly pool: Pool
  readonly run: string
  readonly name: string
  readonly workMs: number
  readonly isDependencyDown: boolean
  readonly history: HistoryWriter
  readonly die: (where: string) => never
}

/** Does what the message asks for, and writes down that it began. */
export function handlerOf(parts: HandlerParts): Handler<Body, Effects> {
  const { history, name, workMs, die } = parts
  return async ({ body }, { attempt, tx }) => {
    const { id } = body
    history.write({ what: 'handler_started', id, attempt })
    if (body.kind === 'killer') die('handler')
    if (workMs > 0) await after(Math.random() * workMs)
    const failure = await failureOf(body, attempt, parts)
    if (failure !== undefined) {
      history.write({ what: 'failed', id, attempt })
      throw failure
    }
    tx.add(name)
  }
}

async function failureOf(
  { id, kind, failures }: Body,
  attempt: number,
  { pool, run, isDependencyDown }: HandlerParts,
): Promise<Error | undefined> {
  switch (kind) {
    case 'flaky':
      // Counted outside: while the dependency is thought sick, our own count stands still.
      return (await countRun(pool, run, id)) <= failures ? unreachable() : undefined
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
