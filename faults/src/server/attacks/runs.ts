import type { Output } from '@redrive/api'
import { becomesTrue } from '../../harness/wait.ts'
import { type Person, must, type HttpResponse } from './ask.ts'
import type { Target } from './target.ts'

export type Run = Output<'getReplay'>

export const plan = (asking: Person, body: object): Promise<HttpResponse> =>
  asking('POST', '/api/v1/replays', { body })

/** Plans without a canary. No consumer confirms the first item, so all are published immediately. */
export const planned = async (asking: Person, selection: object): Promise<Run> =>
  must<Run>(await plan(asking, { selection, canary: [] }))

export const approve = (
  asking: Person,
  { id, hash }: Pick<Run, 'id' | 'hash'>,
  headers: Readonly<Record<string, string>> = {},
): Promise<HttpResponse> =>
  asking('POST', `/api/v1/replays/${id}/approve`, { body: { hash }, headers })

/** States of items that are not published yet. */
const WAITING = ['queued', 'claimed', 'publishing'] as const
/** 15 s: a run starts within a second, and a rejected one pauses after a few turns. */
const OUT_MS = 15_000

/**
 * Resolves when no item of the run waits any more. Returns the message ids that arrived in each
 * queue.
 */
export async function outcome(
  { as, queues }: Target,
  { id }: Pick<Run, 'id'>,
  ...into: readonly string[]
): Promise<{ readonly run: Run; readonly arrived: ReadonlyMap<string, readonly string[]> }> {
  const read = async () => must<Run>(await as.root('GET', `/api/v1/replays/${id}`))
  let run = await read()
  const isOut = async () => {
    run = await read()
    return run.state !== 'running' || WAITING.every((state) => run.counts[state] === 0)
  }
  await becomesTrue(isOut, { withinMs: OUT_MS })
  const arrived = new Map<string, string[]>()
  for (const queue of into) {
    arrived.set(queue, [])
    for (;;) {
      const message = await queues.take(queue)
      if (message === undefined) break
      arrived.get(queue)?.push(String(message.properties.messageId))
    }
  }
  return { run, arrived }
}
