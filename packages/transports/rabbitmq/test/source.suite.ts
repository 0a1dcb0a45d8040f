import { cycleFromReport, encodeHeaders, isRedriveError, SETTLE } from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import type { Channel } from 'amqplib'
import { describe, expect, it } from 'vitest'
import { deadLetterQueue } from '../src/index.ts'
import {
  type Rig,
  closedByBroker,
  deadLetter,
  type Line,
  lineOf,
  onRig,
  quarantine,
  retryIn,
  until,
  watched,
} from './rig.ts'

const bodyOf = ({ delivery }: DrainedDeadLetter) => Buffer.from(delivery.bytes).toString()

/** Drains until a dead letter arrives, because the broker dead-letters with a delay. */
async function drainedFrom(rig: Rig, queue: string): Promise<DrainedDeadLetter> {
  await until(`a message in ${queue}`, async () => ((await rig.count(queue)) ?? 0) > 0)
  const { deadLetters } = await rig.source({ deadLetterQueues: [queue] }).drain({ limit: 1 })
  const [first] = deadLetters
  if (first === undefined) throw new Error('nothing was drained')
  return first
}

/** Rejects the first message of a queue, like a consumer without Redrive. */
const reject = (rig: Rig, queue: string) =>
  rig.onChannel(async (channel) => {
    const message = await channel.get(queue)
    if (message !== false) channel.nack(message, false, false)
    await channel.checkQueue(queue)
  })

/** Fills the dead-letter queue with dead letters of Redrive. */
async function letters(rig: Rig, count: number): Promise<void> {
  const { transport, inbox } = await rig.start()
  for (let number = 0; number < count; number++) await rig.send(String(number))
  await inbox.nth(count)
  await Promise.all(
    inbox.deliveries.map(async (delivery) => transport.enact(delivery, deadLetter())),
  )
  await transport.close()
}

export function deadLetterSource(url: string): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(url, test)

  describe.concurrent('draining dead letters of Redrive', () => {
    it(
      'finds dead letters and quarantine, with reason, class and origin',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        for (const body of ['dead', 'poison']) await rig.send(body, { messageId: body })
        await inbox.nth(2)
        const [dead, poison] = inbox.deliveries
        if (dead === undefined || poison === undefined) return
        await transport.enact(dead, deadLetter())
        await transport.enact(poison, quarantine('schema'))
        const { deadLetters } = await rig.source().drain({ limit: 10 })
        expect(deadLetters.map((one) => ({ ...one, delivery: one.delivery.id }))).toMatchObject([
          {
            delivery: 'dead',
            origin: rig.queue,
            quarantined: false,
            class: 'unknown',
            reason: 'attempts_exhausted',
          },
          {
            delivery: 'poison',
            origin: rig.queue,
            quarantined: true,
            class: 'unknown',
            reason: 'same_failure_repeated',
          },
        ])
        expect(deadLetters[0]?.delivery.cycle).toMatchObject({
          attempts: 1,
          firstFailedAt: 1_700_000_000_000,
        })
      }),
    )

    it(
      'takes no more than the limit, and the rest with the next batch',
      on(async (rig) => {
        await letters(rig, 5)
        const source = rig.source()
        const first = await source.drain({ limit: 3 })
        const second = await source.drain({ limit: 3 })
        expect([...first.deadLetters, ...second.deadLetters].map(bodyOf)).toEqual([
          '0',
          '1',
          '2',
          '3',
          '4',
        ])
        expect(first.deadLetters).toHaveLength(3)
      }),
    )

    it(
      'replaces a hung connection and continues',
      on(async (rig) => {
        await letters(rig, 2)
        const lines: Line[] = []
        const onChannel = (channel: Channel, line: Line) => {
          if (line === lines[0]) channel.consume = () => new Promise(() => undefined)
        }
        const source = rig.source({ connect: watched(lines, { onChannel }) })
        await expect(source.drain({ limit: 10 })).rejects.toMatchObject({ code: 'UNREACHABLE' })
        const { deadLetters } = await source.drain({ limit: 10 })
        expect(deadLetters.map(bodyOf)).toEqual(['0', '1'])
        expect(lines).toHaveLength(2)
      }),
    )

    it(
      'keeps them in the broker until they are released',
      on(async (rig) => {
        await letters(rig, 2)
        const queue = deadLetterQueue(rig.queue)
        const crashed = rig.source()
        expect((await crashed.drain({ limit: 10 })).deadLetters).toHaveLength(2)
        await crashed.close()
        await until('they are back', async () => (await rig.count(queue)) === 2)
        const source = rig.source()
        const batch = await source.drain({ limit: 10 })
        expect(batch.deadLetters.map(bodyOf).toSorted()).toEqual(['0', '1'])
        await batch.release()
        await source.close()
        expect(await rig.count(queue)).toBe(0)
      }),
    )

    it(
      'drains abandoned dead letters again',
      on(async (rig) => {
        await letters(rig, 2)
        const source = rig.source()
        const batch = await source.drain({ limit: 10 })
        await batch.abandon()
        await until('they are back', async () => {
          return (await rig.count(deadLetterQueue(rig.queue))) === 2
        })
        expect(await source.depth()).toBe(2)
        expect((await source.drain({ limit: 10 })).deadLetters).toHaveLength(2)
      }),
    )

    it(
      'counts waiting and drained dead letters',
      on(async (rig) => {
        await letters(rig, 3)
        const source = rig.source()
        expect(await source.depth()).toBe(3)
        const batch = await source.drain({ limit: 2 })
        expect(await source.depth()).toBe(3)
        await batch.release()
        expect(await source.depth()).toBe(1)
      }),
    )

    it(
      'rejects when the connection was lost before the release, and drains them again',
      on(async (rig) => {
        await letters(rig, 2)
        const lines: Line[] = []
        const source = rig.source({ connect: watched(lines) })
        const lost = await source.drain({ limit: 10 })
        const before = lineOf(lines, 'drain')
        closedByBroker(before)
        await until('a new connection', () => lineOf(lines, 'drain') !== before)
        const error = await lost.release().catch((reason: unknown) => reason)
        expect(isRedriveError(error, 'DELIVERY_LOST')).toBe(true)
        const again = await source.drain({ limit: 10 })
        expect(again.deadLetters.map(bodyOf).toSorted()).toEqual(['0', '1'])
        await again.release()
        await source.close()
        expect(await rig.count(deadLetterQueue(rig.queue))).toBe(0)
      }),
    )

    it(
      'gives each dead letter to one of two concurrent drains',
      on(async (rig) => {
        await letters(rig, 40)
        const batches = await Promise.all(
          [rig.source(), rig.source()].map((source) => source.drain({ limit: 40 })),
        )
        const bodies = batches.flatMap(({ deadLetters }) => deadLetters.map(bodyOf))
        expect(new Set(bodies).size).toBe(bodies.length)
        expect(bodies).toHaveLength(40)
      }),
    )
  })

  describe.concurrent('draining foreign dead letters', () => {
    /** Declares a queue with a dead-letter exchange, as without Redrive. */
    async function plain(rig: Rig, args: Readonly<Record<string, unknown>>) {
      const dead = `${rig.queue}-dead`
      const work = `${rig.queue}-work`
      await rig.makeQueue(dead)
      await rig.makeQueue(work, {
        'x-dead-letter-exchange': '',
        'x-dead-letter-routing-key': dead,
        ...args,
      })
      return { dead, work }
    }

    it(
      'a message that was rejected',
      on(async (rig) => {
        const { dead, work } = await plain(rig, {})
        const before = Date.now()
        await rig.publish('', work, 'body', { messageId: 'm-1', headers: { mine: 1 } })
        await reject(rig, work)
        const drained = await drainedFrom(rig, dead)
        expect(drained).toMatchObject({
          origin: work,
          reason: 'broker_rejected',
          quarantined: false,
          class: 'unknown',
          delivery: { id: 'm-1', source: work, headers: { mine: 1 }, cycle: { attempts: 1 } },
        })
        // The broker stores times in seconds.
        const { firstFailedAt = 0 } = drained.delivery.cycle
        expect(firstFailedAt).toBeGreaterThanOrEqual(before - 1_000)
        expect(firstFailedAt).toBeLessThanOrEqual(Date.now() + 1_000)
      }),
    )

    it(
      'a replay that was rejected again, with the new reason',
      on(async (rig) => {
        const { dead, work } = await plain(rig, {})
        await rig.publish('', work, 'body', { messageId: 'm-1' })
        await reject(rig, work)
        await until('a dead letter', async () => ((await rig.count(dead)) ?? 0) > 0)
        const source = rig.source({ deadLetterQueues: [dead] })
        const batch = await source.drain({ limit: 1 })
        const [deadLetter] = batch.deadLetters
        if (deadLetter === undefined) throw new Error('nothing was drained')
        await batch.release()
        await source.publish({ deadLetter, replayId: 'r-1' })
        await reject(rig, work)
        expect(await drainedFrom(rig, dead)).toMatchObject({
          origin: work,
          reason: 'broker_rejected',
          delivery: {
            id: 'm-1',
            replayId: 'r-1',
            cycle: {
              number: 2,
              attempts: 1,
              history: deadLetter.delivery.cycle.history.map(({ signature, message }) => ({
                signature,
                message,
              })),
            },
          },
        })
      }),
    )

    it(
      'a message that waited in a delay queue before it was rejected',
      on(async (rig) => {
        const { dead, work } = await plain(rig, {})
        const delay = `${rig.queue}-delay`
        await rig.makeQueue(delay, {
          'x-message-ttl': 20,
          'x-dead-letter-exchange': '',
          'x-dead-letter-routing-key': work,
        })
        await rig.publish('', delay, 'body', { messageId: 'm-1' })
        await until('it is in the queue', async () => (await rig.count(work)) === 1)
        await reject(rig, work)
        const drained = await drainedFrom(rig, dead)
        expect(drained).toMatchObject({
          origin: work,
          reason: 'broker_rejected',
          delivery: { source: work, cycle: { attempts: 1 } },
          envelope: { exchange: '', routingKey: delay },
        })
        await rig.source().publish({ deadLetter: drained, replayId: 'r-1' })
        expect((await rig.take(work)).properties.messageId).toBe('m-1')
      }),
    )

    it(
      'a retry that a consumer without Redrive rejected, with the reason of the broker and our history',
      on(async (rig) => {
        const { dead, work } = await plain(rig, {})
        rig.owns(`${work}.redrive`)
        const { transport, inbox } = await rig.start({
          queue: work,
          topology: 'adopt',
          queueType: 'classic',
        })
        await rig.publish('', work, 'body', { messageId: 'm-1' })
        const first = await inbox.nth(1)
        await transport.pause()
        await transport.enact(first, retryIn(100))
        await until('the retry is in the queue', async () => (await rig.count(work)) === 1)
        await reject(rig, work)
        expect(await drainedFrom(rig, dead)).toMatchObject({
          origin: work,
          reason: 'broker_rejected',
          delivery: { id: 'm-1', cycle: { attempts: 1, history: [{ number: 1 }] } },
        })
      }),
    )

    it(
      'a retry that crashed its consumers until the delivery limit, with the time of the crashes',
      on(async (rig) => {
        const { dead, work } = await plain(rig, {})
        const [failedAt, crashedAt] = [1_700_000_000_000, 1_700_000_060_000]
        const { headers } = encodeHeaders({
          id: 'm-1',
          key: 'm-1',
          source: work,
          replayId: undefined,
          reason: 'backoff',
          cycle: cycleFromReport({
            type: 'Error',
            message: 'no stock',
            stack: undefined,
            at: failedAt,
            attempts: 1,
          }),
        })
        const death = {
          queue: work,
          reason: 'delivery_limit',
          count: 1,
          exchange: '',
          'routing-keys': [work],
          time: { '!': 'timestamp', value: crashedAt / 1_000 },
        }
        await rig.publish('', dead, 'body', { headers: { ...headers, 'x-death': [death] } })
        expect(await drainedFrom(rig, dead)).toMatchObject({
          origin: work,
          reason: 'broker_delivery_limit',
          delivery: {
            cycle: {
              attempts: 2,
              runs: 2,
              firstFailedAt: failedAt,
              history: [
                { number: 1, at: failedAt, message: 'no stock' },
                {
                  number: 2,
                  at: crashedAt,
                  message: 'the broker dead-lettered it: delivery_limit',
                },
              ],
            },
          },
        })
      }),
    )

    it(
      'a message that expired, with no attempt',
      on(async (rig) => {
        const { dead, work } = await plain(rig, { 'x-message-ttl': 20 })
        await rig.publish('', work, 'body')
        expect(await drainedFrom(rig, dead)).toMatchObject({
          origin: work,
          reason: 'broker_expired',
          delivery: { cycle: { attempts: 0 } },
        })
      }),
    )

    it(
      'a message that was dropped from a full queue',
      on(async (rig) => {
        const { dead, work } = await plain(rig, { 'x-max-length': 1 })
        for (const body of ['old', 'new']) await rig.publish('', work, body)
        const drained = await drainedFrom(rig, dead)
        expect(drained).toMatchObject({ origin: work, reason: 'broker_maxlen' })
        expect(bodyOf(drained)).toBe('old')
      }),
    )

    it(
      'a message with Redrive headers that the broker dead-lettered',
      on(async (rig) => {
        const { transport } = await rig.start()
        await transport.pause()
        await rig.send('body', { expiration: '1' })
        const drained = await drainedFrom(rig, deadLetterQueue(rig.queue))
        expect(drained).toMatchObject({ origin: rig.queue, reason: 'broker_expired' })
      }),
    )

    it(
      'an error queue of NServiceBus',
      on(async (rig) => {
        const queue = `${rig.queue}-error`
        await rig.makeQueue(queue)
        const headers = {
          'NServiceBus.FailedQ': 'Sales@MACHINE',
          'NServiceBus.ExceptionInfo.ExceptionType': 'System.TimeoutException',
          'NServiceBus.ExceptionInfo.Message': 'The operation has timed out.',
          'NServiceBus.ExceptionInfo.StackTrace': 'at Sales.Handle()',
          'NServiceBus.TimeOfFailure': '2026-11-14 23:44:05:123456 Z',
          'NServiceBus.FLRetries': '4',
          'NServiceBus.Retries': '2',
          'x-death': [],
        }
        await rig.publish('', queue, 'body', { headers })
        const drained = await drainedFrom(rig, queue)
        expect(drained).toMatchObject({
          origin: 'Sales',
          reason: 'nservicebus_failed',
          delivery: {
            source: 'Sales',
            cycle: {
              attempts: 7,
              firstFailedAt: Date.parse('2026-11-14T23:44:05.123Z'),
              history: [{ number: 7, message: 'The operation has timed out.' }],
            },
          },
        })
        expect(drained.class).toBe(drained.delivery.cycle.history[0]?.class)
      }),
    )

    it(
      'an error queue of MassTransit',
      on(async (rig) => {
        const queue = `${rig.queue}_error`
        await rig.makeQueue(queue)
        const headers = {
          'MT-Reason': 'fault',
          'MT-Fault-ExceptionType': 'System.Net.Http.HttpRequestException',
          'MT-Fault-Message': 'Connection refused',
          'MT-Fault-InputAddress': 'rabbitmq://host/vhost/submit%20order?durable=true',
          'MT-Fault-Timestamp': '2026-11-14T23:44:05.1234567Z',
          'MT-Fault-RetryCount': 3,
        }
        await rig.publish('', queue, 'body', { headers })
        expect(await drainedFrom(rig, queue)).toMatchObject({
          origin: 'submit order',
          reason: 'masstransit_fault',
          delivery: {
            cycle: {
              attempts: 4,
              firstFailedAt: Date.parse('2026-11-14T23:44:05.123Z'),
              history: [{ message: 'Connection refused' }],
            },
          },
        })
      }),
    )

    it(
      'a message without failure headers, with the source queue as origin',
      on(async (rig) => {
        const queue = `${rig.queue}-error`
        await rig.makeQueue(queue)
        await rig.publish('', queue, 'body')
        expect(await drainedFrom(rig, queue)).toMatchObject({
          origin: rig.queue,
          reason: 'unknown',
          class: 'unknown',
        })
      }),
    )
  })

  describe.concurrent('replaying', () => {
    /** Returns a dead letter that a topic exchange routed to this queue and to another one. */
    async function published(rig: Rig) {
      const exchange = `${rig.queue}-events`
      const other = `${rig.queue}-other`
      await rig.makeExchange(exchange, 'topic')
      await rig.makeQueue(other)
      const { transport, inbox } = await rig.start()
      await rig.onChannel(async (channel) => {
        await channel.bindQueue(rig.queue, exchange, 'order.*')
        await channel.bindQueue(other, exchange, 'order.*')
      })
      await rig.publish(exchange, 'order.paid', 'body', { messageId: 'm-1', priority: 4 })
      await transport.enact(await inbox.nth(1), retryIn(100))
      await transport.enact(await inbox.nth(2), deadLetter())
      return { other, transport, inbox }
    }

    /** Returns the dead letter as a catalog stores it: text and bytes. */
    const kept = (letter: DrainedDeadLetter): DrainedDeadLetter => ({
      ...letter,
      envelope: JSON.parse(JSON.stringify(letter.envelope)) as Record<string, string>,
      delivery: { ...letter.delivery, bytes: Uint8Array.from(letter.delivery.bytes) },
    })

    it(
      'publishes to the queue that failed, and to no other',
      on(async (rig) => {
        const { other, transport, inbox } = await published(rig)
        const source = rig.source()
        const batch = await source.drain({ limit: 1 })
        for (const letter of batch.deadLetters) {
          await source.publish({ deadLetter: kept(letter), replayId: 'r-1' })
        }
        await batch.release()
        const replayed = await inbox.nth(3)
        expect(replayed).toMatchObject({ id: 'm-1', replayId: 'r-1', cycle: { number: 2 } })
        expect(replayed.raw.properties.priority).toBe(4)
        await transport.enact(replayed, SETTLE)
        expect(await rig.count(other)).toBe(1)
      }),
    )

    it(
      'publishes through the exchange if configured, to all of its queues',
      on(async (rig) => {
        const { other, inbox } = await published(rig)
        const source = rig.source({ replayTo: 'exchange' })
        const { deadLetters } = await source.drain({ limit: 1 })
        for (const letter of deadLetters) {
          await source.publish({ deadLetter: kept(letter), replayId: 'r-1' })
        }
        const replayed = await inbox.nth(3)
        expect(replayed.raw.fields).toMatchObject({ routingKey: 'order.paid' })
        expect(replayed.replayId).toBe('r-1')
        expect(await rig.count(other)).toBe(2)
      }),
    )

    it(
      'publishes a dead letter of the broker to the exchange and with all keys of the producer',
      on(async (rig) => {
        const [exchange, dlx] = [`${rig.queue}-events`, `${rig.queue}-dlx`]
        const [dead, audit] = [`${rig.queue}-dead`, `${rig.queue}-audit`]
        for (const name of [exchange, dlx]) await rig.makeExchange(name, 'topic')
        const args = { 'x-dead-letter-exchange': dlx, 'x-dead-letter-routing-key': 'failed' }
        await rig.makeQueue(rig.queue, args)
        for (const name of [dead, audit]) await rig.makeQueue(name)
        await rig.onChannel(async (channel) => {
          await channel.bindQueue(rig.queue, exchange, 'order.*')
          await channel.bindQueue(audit, exchange, 'audit')
          await channel.bindQueue(dead, dlx, '#')
        })
        const headers = { CC: ['audit'] }
        await rig.publish(exchange, 'order.paid', 'body', { messageId: 'm-1', headers })
        await reject(rig, rig.queue)
        const letter = await drainedFrom(rig, dead)
        const source = rig.source({ replayTo: 'exchange', deadLetterQueues: [dead] })
        await source.publish({ deadLetter: kept(letter), replayId: 'r-1' })
        const replayed = await rig.take(rig.queue)
        expect(replayed.fields).toMatchObject({ exchange, routingKey: 'order.paid' })
        expect(await rig.count(audit)).toBe(2)
      }),
    )

    it(
      'rejects with the name of the queue when it is missing',
      on(async (rig) => {
        await letters(rig, 1)
        const source = rig.source()
        const { deadLetters } = await source.drain({ limit: 1 })
        await rig.deleteQueue(rig.queue)
        const [letter] = deadLetters
        if (letter === undefined) throw new Error('nothing was drained')
        const error = await source
          .publish({ deadLetter: letter, replayId: 'r-1' })
          .catch((reason: unknown) => reason)
        expect(isRedriveError(error, 'UNROUTABLE')).toBe(true)
        expect(String(error)).toContain(rig.queue)
      }),
    )

    it(
      'keeps every byte of a body in a shared buffer',
      on(async (rig) => {
        await letters(rig, 1)
        const source = rig.source()
        const { deadLetters } = await source.drain({ limit: 1 })
        const [letter] = deadLetters
        if (letter === undefined) throw new Error('nothing was drained')
        const shared = Uint8Array.from([9, 9, 1, 2, 255, 9])
        const delivery = { ...letter.delivery, bytes: shared.subarray(2, 5) }
        await source.publish({ deadLetter: { ...letter, delivery }, replayId: 'r-1' })
        const { content } = await rig.take(rig.queue)
        expect([...content]).toEqual([1, 2, 255])
      }),
    )
  })
}
