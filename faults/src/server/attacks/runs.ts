import type { Answer } from '@redrive/api'
import { becomesTrue } from '../../wait.ts'
import { type Asking, must, type Told } from './ask.ts'
import type { Target } from './target.ts'

export type Run = Answer<'getReplay'>

export const plan = (asking: Asking, body: object): Promise<Told> =>
  asking('POST', '/api/v1/replays', { body })

/** Without a ramp: nobody proves the first, so all go out at once. */
export const planned = async (asking: Asking, selection: object): Promise<Run> =>
  must<Run>(await plan(asking, { selection, ramp: [] }))

export const approve = (
  asking: Asking,
  { id, hash }: Pick<Run, 'id' | 'hash'>,
  headers: Readonly<Record<string, string>> = {},
): Promise<Told> => asking('POST', `/api/v1/replays/${id}/approve`, { body: { hash }, headers })

/** Not out yet. */
const WAITING = ['queued', 'claimed', 'publishing'] as const
/** 15 s: a run begins within a second, and one that is refused pauses after a few turns. */
const OUT_MS = 15_000

/** Resolves when nothing of it waits any more, with what came to the queues, by the id of the message. */
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
