import { randomUUID } from 'node:crypto'
import { replayedQueue } from '@redrive/rabbitmq'
import type { Scenario } from '../../harness/scenario.ts'
import { becomesTrue, until } from '../../harness/wait.ts'
import { must } from './ask.ts'
import { attack, type Scene } from './attack.ts'
import { approve, planned } from './runs.ts'

/** A writer of queues uses the replay id of a message, which every viewer of a run sees. */
export const FORGED: Scenario = attack(
  'forged',
  'a message or confirmation with the replay id of another message changes that message',
  async (scene) => {
    await copies(scene)
    await confirmations(scene)
  },
)

const ORIGINAL = '{"order":"original"}'

interface Victim {
  readonly id: string
  readonly run: string
  /** The replay id as viewers of the run see it. */
  readonly seen: string
  /** The replay id as consumers get it. */
  readonly signed: string
}

/** Publishes a replay of a dead letter of orders. No consumer handles it. */
async function published({ target }: Scene): Promise<Victim> {
  const { as, pool, queues } = target
  await queues.empty(queues.of('orders'))
  const [id = ''] = await queues.kill(pool, 'orders', [{ body: ORIGINAL }])
  const run = await planned(as.alice, { ids: [id] })
  must(await approve(as.bob, run))
  let signed: string | undefined
  await until(
    'the replay is published',
    async () => {
      const message = await queues.take(queues.of('orders'))
      signed ??= message?.properties.headers?.['redrive-replay-id'] as string | undefined
      return signed !== undefined
    },
    { withinMs: 30_000 },
  )
  return { id, run: run.id, seen: signed?.slice(0, 36) ?? '', signed: signed ?? '' }
}

/** Returns what changed in the victim, or undefined. */
async function changeOf({ target }: Scene, { id, run }: Victim): Promise<string | undefined> {
  const { as } = target
  const path = `/api/v1/dead-letters/${id}`
  const { status, cycle } = must<{ status: string; cycle: number }>(await as.root('GET', path))
  const { text } = must<{ text: string }>(await as.root('GET', `${path}/payload?reason=attack`))
  const { items } = must<{ items: readonly { state: string }[] }>(
    await as.root('GET', `/api/v1/replays/${run}/items`),
  )
  const now = `${status} ${cycle} ${items[0]?.state} ${text}`
  return now === `replaying 1 published ${ORIGINAL}` ? undefined : now
}

/** Messages in a dead-letter queue that claim to be a replay that failed again. */
async function copies(scene: Scene): Promise<void> {
  const { target, tries } = scene
  const ways = [
    ['billing', 'seen', '{"order":"forged"}'],
    ['billing', 'signed', '{"order":"forged"}'],
    ['billing', 'signed', ORIGINAL],
    ['orders', 'seen', ORIGINAL],
    ['orders', 'signed', '{"order":"forged"}'],
  ] as const
  for (const [source, which, body] of ways) {
    const victim = await published(scene)
    const id = randomUUID()
    const origin = target.queues.of('orders')
    await target.queues.send(source, { id, body, origin, replayId: victim[which] })
    let change: string | undefined
    const isOver = async () => {
      const text = 'select from redrive_catalog.dead_letter where message_id = $1'
      const { rowCount } = await target.pool.query(text, [id])
      change = await changeOf(scene, victim)
      return rowCount !== 0 || change !== undefined
    }
    await until('the forged message is ingested', isOver, { withinMs: 30_000 })
    const what = `a message in the dead-letter queue of ${source} with the ${which} replay id`
    tries.note(`${what} and the body ${body} makes it ${change}`, change !== undefined)
    await target.as.root('POST', `/api/v1/replays/${victim.run}/cancel`)
  }
}

const MISMATCHES = 'select sum(mismatches)::integer as count from redrive_catalog.source'

/** Confirmations that the consumer of the message did not write. */
async function confirmations(scene: Scene): Promise<void> {
  const { target, tries } = scene
  const ways = [
    ['billing', 'seen'],
    ['billing', 'signed'],
    ['orders', 'seen'],
  ] as const
  const mismatches = async () =>
    (await target.pool.query<{ count: number }>(MISMATCHES)).rows[0]?.count ?? 0
  for (const [source, which] of ways) {
    const victim = await published(scene)
    const before = await mismatches()
    const confirmation = { version: 1, replayId: victim[which], outcome: 'handled', at: Date.now() }
    const queue = replayedQueue(target.queues.of(source))
    await target.queues.put(queue, JSON.stringify(confirmation))
    let change: string | undefined
    const isOver = async () => {
      change = await changeOf(scene, victim)
      return change !== undefined || (await mismatches()) > before
    }
    if (!(await becomesTrue(isOver, { withinMs: 30_000 })))
      throw new Error(`The confirmation in ${queue} was not read.`)
    const what = `a confirmation in the queue of ${source} with the ${which} replay id`
    tries.note(`${what} makes it ${change}`, change !== undefined)
    await target.as.root('POST', `/api/v1/replays/${victim.run}/cancel`)
  }
}
