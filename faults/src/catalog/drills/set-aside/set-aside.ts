import { isDeepStrictEqual } from 'node:util'
import { alertsOf } from '@redrive/catalog'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { connect, type GetMessage } from 'amqplib'
import { brokenIf } from '../../../evidence/evidence.ts'
import {
  atScale,
  type Result,
  type Scenario,
  type Session,
  textOf,
} from '../../../harness/scenario.ts'
import { urlsOf } from '../../../harness/services.ts'
import { becomesTrue } from '../../../harness/wait.ts'
import { onSite, type Site } from '../site.ts'
import {
  LARGE_HEADER,
  MAX_PAYLOAD_BYTES,
  producerHeaders,
  REJECTED_TYPE,
  type Sample,
  samplesOf,
} from './samples.ts'

const GOOD = { full: 10_000, quick: 1_000 } as const
const EACH = { full: 10, quick: 4 } as const
/** The second batch is committed and not released. It contains messages without an id. */
const DIES_AT = 2
/** 60 s until every message is visible, good or bad. */
const VISIBLE_MS = 60_000

/** Whatever a message contains, it is stored whole, once, and does not delay its neighbours. */
export const setAside: Scenario = {
  name: 'set-aside',
  story:
    '12 kinds of bad message among good ones; the ingest is killed between its commit and the release',
  play: (world) => onSite('set-aside', 'rabbitmq', (site) => play(site, world)),
}

async function play(site: Site, { scale, say }: Session): Promise<Result> {
  const samples = samplesOf(atScale(GOOD, scale), atScale(EACH, scale))
  const expected = samples.filter(({ isSetAside }) => isSetAside).length
  await site.pool.query(`alter table redrive_catalog.dead_letter add constraint rejects
    check (content_type is distinct from '${REJECTED_TYPE}')`)
  const deadLetters = `${site.where.queue}-dead`
  await publishAll(site, deadLetters, samples)
  const options = { deadLetters, maxPayloadBytes: MAX_PAYLOAD_BYTES }
  const end = await (await site.background({ ...options, diesAtRelease: DIES_AT })).gone
  const startedAt = performance.now()
  await site.background(options)
  const isVisible = async () => {
    const { count, aside, isAlerted } = await visibleIn(site)
    return count >= samples.length - expected && aside >= expected && isAlerted
  }
  const isInTime = await becomesTrue(isVisible, { withinMs: VISIBLE_MS, everyMs: 200 })
  const seconds = (performance.now() - startedAt) / 1_000
  const left = await depthOf(site, deadLetters)
  say(`all are visible after ${seconds.toFixed(1)} s and a ${end}`)
  const stored = await storedIn(site)
  const lost = samples.filter(({ index }) => !stored.has(index))
  const twice = samples.filter(({ index }) => (stored.get(index)?.length ?? 0) > 1)
  const changed = samples.flatMap((sample) => differences(sample, stored.get(sample.index)?.[0]))
  const aside = samples.filter((one) => one.isSetAside)
  const unreturned = lost.length > 0 ? [] : await replayed(site, aside)
  return {
    events: samples.length,
    figures: [
      `${samples.length} messages, ${expected} of them set aside`,
      `lost ${lost.length}`,
      `changed ${changed.length}`,
      `stored twice ${twice.length}`,
      `visible after ${seconds.toFixed(1)} s`,
      `${aside.length} replayed, ${unreturned.length} of them wrongly`,
    ],
    broken: brokenIf(
      [end !== 'SIGKILL', 'scenario', `the ingest ended with ${end}`],
      [lost.length > 0, 'lost', `${lost.length}, such as: ${lost[0]?.kind}`],
      [twice.length > 0, 'copied twice', `${twice.length}, such as: ${twice[0]?.kind}`],
      [changed.length > 0, 'changed', `${changed.length}, such as: ${changed[0]}`],
      [unreturned.length > 0, 'in the wrong place', `replayed: ${unreturned[0]}`],
      [left > 0, 'not drained', `${left} are left in the broker`],
      [!isInTime, 'too slow', `not all are visible after ${VISIBLE_MS / 1_000} s`],
    ),
  }
}

// ---- the broker -------------------------------------------------------------------------------

async function publishAll(
  { where }: Site,
  queue: string,
  samples: readonly Sample[],
): Promise<void> {
  const connection = await connect(where.amqpUrl)
  const channel = await connection.createConfirmChannel()
  await channel.assertQueue(queue, { durable: true, arguments: { 'x-expires': 3_600_000 } })
  // The origin, without a consumer.
  await channel.assertQueue(where.queue, { durable: true })
  for (const sample of samples) {
    if (sample.isByHttp) await publishByHttp(queue, sample)
    else channel.sendToQueue(queue, sample.body, sample.properties)
  }
  await channel.waitForConfirms()
  await connection.close()
}

/** Publishes headers that the client library cannot encode. Programs in other languages can. */
async function publishByHttp(queue: string, { body, properties }: Sample): Promise<void> {
  const url = new URL((await urlsOf('rabbitmq', 'http'))[0] ?? '')
  const secret = Buffer.from(`${url.username}:${url.password}`).toString('base64')
  const { messageId: message_id, correlationId: correlation_id, contentType } = properties
  const response = await fetch(`${url.origin}/api/exchanges/%2F/amq.default/publish`, {
    method: 'POST',
    headers: { authorization: `Basic ${secret}` },
    body: JSON.stringify({
      routing_key: queue,
      payload: body.toString(),
      payload_encoding: 'string',
      properties: {
        ...(message_id === undefined ? {} : { message_id }),
        correlation_id,
        content_type: contentType,
        headers: properties.headers as unknown,
      },
    }),
  })
  if (!response.ok) throw new Error(`publish by HTTP: ${response.status} ${await response.text()}`)
}

async function depthOf({ where }: Site, queue: string): Promise<number> {
  const connection = await connect(where.amqpUrl)
  const channel = await connection.createChannel()
  const { messageCount } = await channel.checkQueue(queue)
  await connection.close()
  return messageCount
}

// ---- the catalog ------------------------------------------------------------------------------

async function visibleIn({ catalog, where }: Site) {
  const counts = await catalog.counts()
  const mine = counts.sources.find(({ source }) => source === where.queue)
  const isAlerted = alertsOf(counts).some(({ kind }) => kind === 'set_aside')
  return { count: mine?.count ?? 0, aside: mine?.setAside ?? 0, isAlerted }
}

/** A stored message, or why it cannot be read. */
type Stored = DrainedDeadLetter | string

/** Returns all stored messages by number, dead letters and set-aside ones. */
async function storedIn({ catalog, pool }: Site): Promise<ReadonlyMap<number, readonly Stored[]>> {
  const found: (readonly [number, Stored])[] = []
  const add = async (
    id: string,
    messageId: string,
    read: () => Promise<DrainedDeadLetter | undefined>,
  ) => {
    try {
      const drained = (await read()) ?? `${id} has no content`
      const index = typeof drained === 'string' ? Number.NaN : drained.envelope['correlationId']
      found.push([Number(index), drained])
    } catch (error) {
      // With an id the number is known, and the message counts as changed and not as lost.
      found.push([Number(messageId.replace('message-', '')), textOf(error)])
    }
  }
  const letters = await pool.query<Named>('select id, message_id from redrive_catalog.dead_letter')
  for (const { id, message_id } of letters.rows)
    await add(id, message_id, async () => (await catalog.deadLetter(id))?.drained)
  const aside = await pool.query<Named>('select id, message_id from redrive_catalog.set_aside')
  for (const { id, message_id } of aside.rows)
    await add(id, message_id, async () => (await catalog.setAside.read(id))?.drained)
  const byIndex = Map.groupBy(found, ([index]) => index)
  return new Map([...byIndex].map(([index, all]) => [index, all.map(([, stored]) => stored)]))
}

interface Named {
  readonly id: string
  readonly message_id: string
}

function differences(sample: Sample, stored: Stored | undefined): readonly string[] {
  if (stored === undefined) return []
  if (typeof stored === 'string') return [`${sample.kind} cannot be read: ${stored}`]
  const { bytes, headers } = stored.delivery
  if (!sample.body.equals(bytes)) return [`${sample.kind}: another body`]
  const isSame = isDeepStrictEqual({ ...headers }, producerHeaders(sample))
  return isSame ? [] : [`${sample.kind}: other headers`]
}

// ---- replays ----------------------------------------------------------------------------------

/** Replays all set-aside messages to their origin, and returns what is missing or different there. */
async function replayed(
  { catalog, where }: Site,
  aside: readonly Sample[],
): Promise<readonly string[]> {
  const { messages } = await catalog.setAside.list({ limit: 200 })
  const ids = messages.map(({ id }) => id)
  const withoutHeaders = [LARGE_HEADER]
  await catalog.setAside.requestReplay(ids, { by: 'ada', withoutHeaders })
  await catalog.setAside.approve(ids, { by: 'bob', withoutHeaders })
  const connection = await connect(where.amqpUrl)
  const channel = await connection.createChannel()
  const arrived = new Map<string, GetMessage>()
  const areThere = async () => {
    for (;;) {
      const message = await channel.get(where.queue, { noAck: true })
      if (message === false) return arrived.size >= aside.length
      arrived.set(String(message.properties.correlationId), message)
    }
  }
  await becomesTrue(areThere, { withinMs: VISIBLE_MS, everyMs: 200 })
  await connection.close()
  return aside.flatMap((sample) => difference(sample, arrived.get(String(sample.index))))
}

function difference(sample: Sample, message: GetMessage | undefined): readonly string[] {
  if (message === undefined) return [`${sample.kind} did not arrive`]
  if (!message.content.equals(sample.body)) return [`${sample.kind} has another body`]
  const { [LARGE_HEADER]: _, ...expected } = producerHeaders(sample)
  const headers = Object.entries({ ...message.properties.headers } as Record<string, unknown>)
  const own = Object.fromEntries(headers.filter(([name]) => !name.startsWith('redrive-')))
  return isDeepStrictEqual(own, expected) ? [] : [`${sample.kind} has other headers`]
}
