import { isDeepStrictEqual } from 'node:util'
import { connect } from 'amqplib'
import { brokenIf } from '../../../evidence/evidence.ts'
import { atScale, type Result, type Scenario, type Session } from '../../../harness/scenario.ts'
import { until } from '../../../harness/wait.ts'
import type { Where } from '../../options.ts'
import { onSite, type Site } from '../site.ts'
import type { PutBackProgram } from './program.ts'

const COUNT = { full: 10_000, quick: 500 } as const
/** The batch of a put-back. After a crash, at most one batch is in the catalog and in the queue. */
const BATCH = 100
const WITHIN_MS = 120_000

/** Dead letters return to their queue unchanged, although the process dies twice in the middle. */
export const putBack: Scenario = {
  name: 'put-back',
  story:
    'dead letters are put back into their queue; the process dies before and after the broker stores a batch',
  play: (session) => onSite('put-back', 'rabbitmq', (site) => playOn(site, session)),
}

async function playOn(site: Site, { scale, messages, say }: Session): Promise<Result> {
  const count = messages ?? atScale(COUNT, scale)
  const deadLetters = `${site.where.queue}.dead`
  await deadLettered(site, deadLetters, count)
  const before = await contentsOf(site, deadLetters, count)
  await site.background({ deadLetters, batch: BATCH })
  await site.ingested(count)

  const middle = Math.max(1, Math.floor(count / BATCH / 2))
  const first = await put(site, { deadLetters, dies: { batch: middle, when: 'before' } })
  const afterFirst = await missingIn(site, deadLetters, before)
  const second = await put(site, { deadLetters, dies: { batch: 2, when: 'after' } })
  const afterSecond = await missingIn(site, deadLetters, before)
  const third = await put(site, { deadLetters })
  const { open = 0 } = await site.statuses()
  const after = await contentsOf(site, deadLetters, count)
  say(`${count} were put back after two kills`)

  const lost = [...before.keys()].filter((id) => !after.has(id))
  const changed = [...after].filter(([id, copies]) =>
    copies.some((one) => !isDeepStrictEqual(one, before.get(id)?.[0])),
  )
  const twice = [...after.values()].reduce((sum, { length }) => sum + length - 1, 0)
  return {
    events: count,
    figures: [
      `${count} dead letters`,
      `lost ${lost.length}`,
      `changed ${changed.length}`,
      `${twice} twice in the queue after a crash (at most ${BATCH})`,
    ],
    broken: brokenIf(
      [first !== 'SIGKILL', 'scenario', `the first put-back ended with ${first}`],
      [second !== 'SIGKILL', 'scenario', `the second put-back ended with ${second}`],
      [third !== 0, 'scenario', `the third put-back ended with ${third}`],
      [afterFirst > 0, 'lost', `${afterFirst} are in neither place after the first kill`],
      [afterSecond > 0, 'lost', `${afterSecond} are in neither place after the second kill`],
      [lost.length > 0, 'lost', `${lost.length} are not in the queue, such as ${lost[0]}`],
      [changed.length > 0, 'changed', `${changed.length} changed: ${JSON.stringify(changed[0])}`],
      [open > 0, 'not drained', `${open} are still open in the catalog`],
      [twice > BATCH, 'copied twice', `${twice} are in the queue twice`],
    ),
  }
}

/** Runs a put-back in a separate process. Returns the signal that ended it, or its exit code. */
async function put(site: Site, special: Omit<PutBackProgram, keyof Where>) {
  const child = await site.start('./put-back/program.ts', { ...site.where, ...special })
  return child.gone
}

/** Publishes messages to a queue where they expire immediately, so that the broker dead-letters them. */
async function deadLettered({ where }: Site, deadLetters: string, count: number): Promise<void> {
  const connection = await connect(where.amqpUrl)
  const channel = await connection.createConfirmChannel()
  await channel.assertQueue(deadLetters, { durable: true })
  const expiring = `${where.queue}.expiring`
  await channel.assertQueue(expiring, {
    arguments: {
      'x-message-ttl': 0,
      'x-dead-letter-exchange': '',
      'x-dead-letter-routing-key': deadLetters,
    },
  })
  for (let at = 0; at < count; at++) {
    const headers = { at, tenant: `t${at % 7}`, table: { list: [1, 'two', true, null] } }
    channel.sendToQueue(expiring, Buffer.from([0, 255, at & 255, at >> 8]), {
      ...{ messageId: `m${at}`, headers, persistent: true, type: 'order', priority: at % 5 },
      ...{ contentType: 'application/x-test', correlationId: `c${at}` },
    })
  }
  await channel.waitForConfirms()
  const isThere = async () => (await channel.checkQueue(deadLetters)).messageCount === count
  await until(`${count} dead letters in the queue`, isThere, { withinMs: WITHIN_MS })
  await channel.deleteQueue(expiring)
  await connection.close()
}

/** Returns the messages of the queue by message id, and leaves them there. */
async function contentsOf(
  { where }: Site,
  queue: string,
  atLeast: number,
): Promise<ReadonlyMap<string, readonly object[]>> {
  const connection = await connect(where.amqpUrl)
  const channel = await connection.createChannel()
  const { messageCount } = await channel.checkQueue(queue)
  const found: { readonly id: string; readonly message: object }[] = []
  await channel.consume(queue, (message) => {
    if (message === null) return
    const { content, properties } = message
    found.push({
      id: String(properties.messageId),
      message: { content: content.toString('hex'), properties },
    })
  })
  const areAll = () => found.length >= messageCount
  await until(`${Math.min(atLeast, messageCount)} messages`, areAll, { withinMs: WITHIN_MS })
  // Closing the channel returns them to the queue.
  await channel.close()
  await connection.close()
  const byId = Map.groupBy(found, ({ id }) => id)
  return new Map([...byId].map(([id, all]) => [id, all.map(({ message }) => message)]))
}

/** Counts the dead letters that are neither in the queue nor in the catalog. */
async function missingIn(
  site: Site,
  queue: string,
  before: ReadonlyMap<string, unknown>,
): Promise<number> {
  const inQueue = await contentsOf(site, queue, 0)
  const { rows } = await site.pool.query<{ id: string }>(
    'select message_id as id from redrive_catalog.dead_letter',
  )
  const known = new Set([...inQueue.keys(), ...rows.map(({ id }) => id)])
  return [...before.keys()].filter((id) => !known.has(id)).length
}
