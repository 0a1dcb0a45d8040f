import { isRedriveError, SETTLE } from '@redrive/core'
import type { Channel, ConfirmChannel } from 'amqplib'
import { describe, expect, it } from 'vitest'
import { deadLetterQueue, quarantineQueue, topologyOf } from '../src/index.ts'
import {
  type Rig,
  closedByBroker,
  deadLetter,
  giveBack,
  handedOff,
  Inbox,
  lineOf,
  onRig,
  retryIn,
  socketOf,
  until,
  within,
} from './rig.ts'
import { ask, type Management, remove } from './management.ts'

/** Publishes again while a new queue of a deleted name does not accept messages yet. */
const sentOnceItAccepts = (rig: Rig, body: string) =>
  until('the queue accepts a message', () =>
    rig.send(body).then(
      () => true,
      () => false,
    ),
  )

export function recovery(url: string, management: Management): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(url, test)

  describe.concurrent('recovery after the broker closes', () => {
    it(
      'a channel: deliveries in flight are reported lost and delivered again',
      on(async (rig) => {
        const { transport, inbox, lines } = await rig.start()
        for (const body of ['a', 'b', 'c']) await rig.send(body)
        await inbox.nth(3)
        const [first] = inbox.deliveries
        if (first === undefined) return
        const channel = lineOf(lines, 'consume').channels.at(-1)
        // An unknown tag: PRECONDITION_FAILED.
        channel?.ack({ ...first.raw, fields: { ...first.raw.fields, deliveryTag: 999 } })
        await inbox.nth(6)
        expect(inbox.lostOnes).toEqual(inbox.deliveries.slice(0, 3))
        expect(inbox.bodies.slice(3).toSorted()).toEqual(['a', 'b', 'c'])
        expect(await transport.enact(first, SETTLE)).toEqual({ kind: 'lost' })
        expect(await transport.enact(first, deadLetter())).toEqual({ kind: 'lost' })
        for (const delivery of inbox.deliveries.slice(3)) {
          expect(await transport.enact(delivery, SETTLE)).toMatchObject({ destination: 'settled' })
        }
        await transport.close()
        expect(await rig.count(rig.queue)).toBe(0)
        expect(await rig.count(deadLetterQueue(rig.queue))).toBe(0)
      }),
    )

    it(
      'the consuming connection: the same, with events',
      on(async (rig) => {
        const events = rig.events()
        const { transport, inbox, lines } = await rig.start()
        for (const body of ['a', 'b', 'c']) await rig.send(body)
        await inbox.nth(3)
        closedByBroker(lineOf(lines, 'consume'))
        await inbox.nth(6)
        expect(inbox.lostOnes).toEqual(inbox.deliveries.slice(0, 3))
        expect(events.map(({ type }) => type)).toEqual(['connection_lost', 'connection_restored'])
        expect(String((events[0] as { error: unknown }).error)).toMatch(/FRAME_ERROR|501/)
        await rig.send('d')
        await inbox.nth(7)
        for (const delivery of inbox.deliveries.slice(3)) await transport.enact(delivery, SETTLE)
        await transport.close()
        expect(await rig.count(rig.queue)).toBe(0)
      }),
    )

    it(
      'the publishing connection: the hand-off is unknown, no delivery is lost, and it reconnects',
      on(async (rig) => {
        const { transport, inbox, lines } = await rig.start()
        await rig.send('a')
        const delivery = await inbox.nth(1)
        closedByBroker(lineOf(lines, 'publish'))
        const first = await transport.enact(delivery, deadLetter())
        expect(first).toMatchObject({ kind: 'unknown', error: { code: 'OUTCOME_UNKNOWN' } })
        await handedOff(() => transport.enact(delivery, deadLetter()))
        expect(inbox.lostOnes).toEqual([])
        expect(inbox.deliveries).toHaveLength(1)
        expect(lines.map(({ purpose }) => purpose)).toEqual(['publish', 'consume', 'publish'])
        expect(await rig.count(deadLetterQueue(rig.queue))).toBe(1)
        await transport.close()
        expect(await rig.count(rig.queue)).toBe(0)
      }),
    )

    it(
      'a connection at the request of an administrator',
      on(async (rig) => {
        const transport = rig.transport()
        const inbox = new Inbox()
        await transport.open()
        transport.limit(10)
        await transport.receive(inbox)
        await rig.send('a')
        await inbox.nth(1)
        interface Connection {
          readonly name: string
          readonly client_properties: { readonly connection_name?: string }
        }
        const name = `redrive ${rig.queue} (consume)`
        let found: Connection | undefined
        await until('the broker lists our connection', async () => {
          const all = await ask<readonly Connection[]>(management, '/connections')
          found = all.find(({ client_properties: own }) => own.connection_name === name)
          return found !== undefined
        })
        await remove(management, `/connections/${encodeURIComponent(found?.name ?? '')}`)
        const second = await inbox.nth(2)
        expect(inbox.lostOnes).toHaveLength(1)
        expect(await transport.enact(second, SETTLE)).toMatchObject({ kind: 'done' })
      }),
    )

    it(
      'the queue: it is declared again and consumed',
      on(async (rig) => {
        const { inbox } = await rig.start()
        await rig.send('a')
        await inbox.nth(1)
        await rig.deleteQueue(rig.queue)
        await until('the queue is back', async () => (await rig.count(rig.queue)) === 0)
        await sentOnceItAccepts(rig, 'b')
        await until('the new message', () => inbox.bodies.includes('b'))
        expect(inbox.bodies.at(-1)).toBe('b')
      }),
    )

    it(
      "the queue with topology 'verify': it is consumed again when it exists, and is not declared",
      on(async (rig) => {
        await rig.makeTopology()
        const events = rig.events()
        const { inbox, lines } = await rig.start({ topology: 'verify' })
        await rig.deleteQueue(rig.queue)
        await until('the loss is noticed', () =>
          events.some(({ type }) => type === 'connection_lost'),
        )
        await until('it was looked for in vain', () => lines.length >= 4)
        expect(await rig.count(rig.queue)).toBeUndefined()
        const { source } = topologyOf(rig.queue, 'quorum')
        await rig.makeQueue(source.name, source.arguments)
        await sentOnceItAccepts(rig, 'b')
        await until('the new message', () => inbox.bodies.includes('b'))
        expect(inbox.bodies.at(-1)).toBe('b')
      }),
    )
  })

  describe.concurrent('an unconfirmed copy', () => {
    it(
      'is unknown, is not sent twice, and counts when the confirm is late',
      on(async (rig) => {
        const held: (() => void)[] = []
        const onConfirmChannel = (channel: ConfirmChannel) => {
          const publish = channel.publish.bind(channel)
          channel.publish = (exchange, key, content, options, done) =>
            publish(exchange, key, content, options, (error, ok) => {
              held.push(() => done?.(error, ok))
            })
        }
        const { transport, inbox } = await rig.start({
          confirmTimeout: '3s',
          hooks: { onConfirmChannel },
        })
        await rig.send('a')
        const delivery = await inbox.nth(1)
        const startedAt = performance.now()
        const first = await transport.enact(delivery, deadLetter())
        expect(first).toMatchObject({ kind: 'unknown', error: { code: 'OUTCOME_UNKNOWN' } })
        expect(performance.now() - startedAt).toBeGreaterThanOrEqual(3_000)
        // After twice the timeout, the connection would be replaced.
        const second = transport.enact(delivery, deadLetter())
        await until('the broker has answered', () => held.length === 1)
        // The original stays unacknowledged until the copy is confirmed.
        expect(await rig.count(deadLetterQueue(rig.queue))).toBe(1)
        held[0]?.()
        expect(await second).toMatchObject({ kind: 'done', destination: 'dead_letter' })
        expect(held).toHaveLength(1)
        await transport.close()
        expect(await rig.count(rig.queue)).toBe(0)
        expect(await rig.count(deadLetterQueue(rig.queue))).toBe(1)
      }),
    )

    it(
      'is refused and names the queue when it is full, and the original stays',
      on(async (rig) => {
        const name = deadLetterQueue(rig.queue)
        await rig.makeTopology([name])
        await rig.makeQueue(name, {
          'x-queue-type': 'classic',
          'x-max-length': 1,
          'x-overflow': 'reject-publish',
        })
        await rig.publish('', name, 'full')
        const { transport, inbox } = await rig.start({ topology: 'verify' })
        await rig.send('a')
        const delivery = await inbox.nth(1)
        const enactment = await transport.enact(delivery, deadLetter())
        const message = `The broker rejected a message to queue ${name}. If the queue is full`
        expect(enactment).toMatchObject({
          kind: 'refused',
          isTooLarge: false,
          error: { code: 'REFUSED', message: expect.stringContaining(message) as string },
        })
        await rig.onChannel((channel) => channel.purgeQueue(name))
        expect(await transport.enact(delivery, deadLetter())).toMatchObject({ kind: 'done' })
        expect((await rig.take(name)).content.toString()).toBe('a')
      }),
    )

    it(
      'is refused and names the queue when it is missing; the original returns on close',
      on(async (rig) => {
        await rig.makeTopology()
        const { transport, inbox } = await rig.start({ topology: 'verify' })
        await rig.deleteQueue(deadLetterQueue(rig.queue))
        await rig.send('a')
        const enactment = await transport.enact(await inbox.nth(1), deadLetter())
        expect(enactment).toMatchObject({ kind: 'refused', error: { code: 'UNROUTABLE' } })
        const { error } = enactment as { error: unknown }
        expect(String(error)).toContain(deadLetterQueue(rig.queue))
        await transport.close()
        await until('the original is back', async () => (await rig.count(rig.queue)) === 1)
      }),
    )
  })

  describe.concurrent('subscribing', () => {
    /** The prefetch of each subscription. */
    function windows() {
      const subscribed: number[] = []
      const onChannel = (channel: Channel) => {
        const prefetch = channel.prefetch.bind(channel)
        const consume = channel.consume.bind(channel)
        let last = 0
        channel.prefetch = (count, isGlobal) => {
          last = count
          return prefetch(count, isGlobal)
        }
        channel.consume = (...request) => {
          // A subscription has no options; the checks at the start have.
          if (request[2] === undefined) subscribed.push(last)
          return consume(...request)
        }
      }
      return { subscribed, onChannel }
    }

    /** The requests and answers, in order. */
    function order() {
      const log: string[] = []
      const onChannel = (channel: Channel) => {
        const cancel = channel.cancel.bind(channel)
        channel.cancel = async (tag) => {
          const answer = await cancel(tag)
          log.push('cancelled')
          return answer
        }
        const consume = channel.consume.bind(channel)
        channel.consume = async (...request) => {
          const answer = await consume(...request)
          log.push('subscribed')
          return answer
        }
      }
      const onConfirmChannel = (channel: ConfirmChannel) => {
        const publish = channel.publish.bind(channel)
        channel.publish = (...request) => {
          log.push('copied')
          return publish(...request)
        }
      }
      return { log, hooks: { onChannel, onConfirmChannel } }
    }

    it(
      'applies a higher and a lower limit at the broker',
      on(async (rig) => {
        const { subscribed, onChannel } = windows()
        const { transport, inbox } = await rig.start({ limit: 3, hooks: { onChannel } })
        for (let number = 0; number < 20; number++) await rig.send(String(number))
        await inbox.nth(3)
        await until('the rest waits', async () => (await rig.count(rig.queue)) === 17)
        transport.limit(8)
        await until('a wider window', () => subscribed.length === 2)
        await inbox.nth(8)
        transport.limit(2)
        await until('a narrow window', () => subscribed.length === 3)
        expect(subscribed).toEqual([3, 8, 2])
      }),
    )

    // A channel with only cancelled subscriptions returns nothing when its node crashes.
    it(
      'starts the new subscription before the old one ends, so that one always exists',
      on(async (rig) => {
        const { log, hooks } = order()
        const { transport, inbox } = await rig.start({ limit: 2, hooks })
        for (let number = 0; number < 10; number++) await rig.send(String(number))
        await inbox.nth(2)
        transport.limit(6)
        await until('the old one has ended', () => log.includes('cancelled'))
        expect(log).toEqual(['subscribed', 'subscribed', 'cancelled'])
        await inbox.nth(8)
        for (const delivery of inbox.deliveries.slice(0, 8)) await transport.enact(delivery, SETTLE)
        await inbox.nth(10)
        expect(inbox.bodies.toSorted()).toEqual(Array.from({ length: 10 }, (_, at) => String(at)))
        // A cancelled subscription counts while it has deliveries in flight.
        await until('there is one consumer', async () => {
          const { consumerCount } = await rig.onChannel((channel) => channel.checkQueue(rig.queue))
          return consumerCount === 1
        })
      }),
    )

    it(
      'keeps the subscription when the limit becomes only slightly lower',
      on(async (rig) => {
        const { subscribed, onChannel } = windows()
        const { transport, inbox } = await rig.start({ limit: 8, hooks: { onChannel } })
        transport.limit(5)
        await rig.send('a')
        // Longer than the delay of a subscription change.
        await transport.enact(await inbox.nth(1), retryIn(500))
        await inbox.nth(2)
        expect(subscribed).toEqual([8])
      }),
    )

    it(
      'stays paused after a reconnect',
      on(async (rig) => {
        const events = rig.events()
        const { transport, inbox, lines } = await rig.start()
        await transport.pause()
        closedByBroker(lineOf(lines, 'consume'))
        await until('it is back', () => events.some(({ type }) => type === 'connection_restored'))
        await rig.send('a')
        // When this is answered, a new connection has sent all its requests.
        await transport.pause()
        const { consumerCount } = await rig.onChannel((channel) => channel.checkQueue(rig.queue))
        expect(consumerCount).toBe(0)
        expect(await rig.count(rig.queue)).toBe(1)
        expect(inbox.deliveries).toEqual([])
        transport.resume()
        await inbox.nth(1)
      }),
    )

    it(
      'resolves a pause when no delivery is on its way',
      on(async (rig) => {
        const { log, hooks } = order()
        const { transport, inbox } = await rig.start({ hooks })
        for (let number = 0; number < 50; number++) await rig.send(String(number))
        await transport.pause()
        expect(log).toEqual(['subscribed', 'cancelled'])
        const received = inbox.deliveries.length
        await until('the rest is at the broker', async () => {
          return (await rig.count(rig.queue)) === 50 - received
        })
        expect(inbox.deliveries).toHaveLength(received)
      }),
    )

    it(
      'does not deliver a message again that is returned after a pause',
      on(async (rig) => {
        const { log, hooks } = order()
        const { transport, inbox } = await rig.start({ hooks })
        await rig.send('a')
        const delivery = await inbox.nth(1)
        void transport.pause()
        expect(await transport.enact(delivery, giveBack)).toMatchObject({ destination: 'returned' })
        expect(log).toEqual(['subscribed', 'cancelled', 'copied'])
        expect(await rig.count(rig.queue)).toBe(1)
        expect(inbox.deliveries).toHaveLength(1)
        transport.resume()
        const second = await inbox.nth(2)
        expect(second).toMatchObject({ id: delivery.id, deliveryCount: 1 })
        expect(second.cycle).toEqual(delivery.cycle)
      }),
    )
  })

  describe.concurrent('closing', () => {
    it(
      'does not wait for an unreachable broker',
      on(async (rig) => {
        let isAway = false
        const onConnect = () => {
          if (isAway) throw new Error('away')
        }
        const { transport, inbox, lines } = await rig.start({ hooks: { onConnect } })
        await rig.send('a')
        const delivery = await inbox.nth(1)
        isAway = true
        for (const { model } of lines) socketOf(model).destroy(new Error('away'))
        await until('the loss is noticed', () => inbox.lostOnes.length === 1)
        expect(await transport.enact(delivery, SETTLE)).toEqual({ kind: 'lost' })
        expect(await transport.enact(delivery, retryIn(100))).toEqual({ kind: 'lost' })
        await within('closed', transport.close(), { timeout: 1_000 })
        const made = lines.length
        isAway = false
        // Longer than the wait before the next attempt.
        const { transport: other, inbox: others } = await rig.start()
        await other.enact(await others.nth(1), retryIn(1_000))
        await others.nth(2)
        expect(lines).toHaveLength(made)
      }),
    )

    it(
      'returns deliveries in flight without counting them',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send('a')
        await inbox.nth(1)
        await transport.close()
        await until('it is back', async () => (await rig.count(rig.queue)) === 1)
        expect(inbox.lostOnes).toEqual([])
      }),
    )
  })

  describe.concurrent('open rejects with instructions', () => {
    async function refusal(opening: Promise<void>): Promise<Error & { readonly code?: unknown }> {
      const error = await opening.then(
        () => new Error('it opened'),
        (reason: unknown) => reason as Error,
      )
      expect(isRedriveError(error)).toBe(true)
      expect(error.message).not.toContain('s3cret')
      return error
    }

    it(
      'when no server listens at the address',
      on(async (rig) => {
        const transport = rig.transport({ url: 'amqp://guest:s3cret@127.0.0.1:1' })
        const error = await refusal(transport.open())
        expect(error.code).toBe('UNREACHABLE')
        expect(error.message).toContain('amqp://127.0.0.1:1')
        expect(error.message).toMatch(/Check the address/)
      }),
    )

    it(
      'when the password is wrong',
      on(async (rig) => {
        const transport = rig.transport({ url: url.replace('guest:guest', 'guest:s3cret') })
        const error = await refusal(transport.open())
        expect(error.code).toBe('UNREACHABLE')
        expect(error.message).toMatch(/ACCESS.REFUSED/)
        expect(error.message).toMatch(/credentials/)
      }),
    )

    it(
      'unless another address works',
      on(async (rig) => {
        const transport = rig.transport({ url: ['amqp://guest:guest@127.0.0.1:1', url] })
        await transport.open()
        expect(await rig.count(rig.queue)).toBe(0)
      }),
    )

    it(
      'when the queue exists with other arguments',
      on(async (rig) => {
        await rig.makeQueue(rig.queue, { 'x-queue-type': 'classic' })
        const error = await refusal(rig.transport().open())
        expect(error.code).toBe('TOPOLOGY_MISMATCH')
        expect(error.message).toContain(rig.queue)
        expect(error.message).toMatch(/PRECONDITION.FAILED/)
        expect(error.message).toContain("topology: 'verify'")
      }),
    )

    it(
      "when queues are missing with topology 'verify', and lists all of them",
      on(async (rig) => {
        const missing = [deadLetterQueue(rig.queue), quarantineQueue(rig.queue, 'schema')]
        await rig.makeTopology(missing)
        const transport = rig.transport({ topology: 'verify' })
        const error = await refusal(transport.open())
        expect(error.code).toBe('TOPOLOGY_MISMATCH')
        expect((error as { problems?: unknown }).problems).toEqual(
          missing.map((name) => `queue ${name} is missing`),
        )
        for (const name of missing) expect(error.message).toContain(name)
        expect(await rig.count(deadLetterQueue(rig.queue))).toBeUndefined()
      }),
    )

    it(
      "when nothing exists with topology 'verify', and lists the exchange too",
      on(async (rig) => {
        const error = await refusal(rig.transport({ topology: 'verify' }).open())
        const { source, deadLetters, later, exchange } = topologyOf(rig.queue, 'quorum')
        expect((error as { problems?: unknown }).problems).toEqual([
          ...[source, deadLetters, ...later].map(({ name }) => `queue ${name} is missing`),
          `exchange ${exchange} is missing`,
        ])
      }),
    )
  })
}
