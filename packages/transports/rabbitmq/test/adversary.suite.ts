import { once } from 'node:events'
import { connect as dial, createServer, type Socket } from 'node:net'
import { isRedriveError, SETTLE } from '@redrive/core'
import type { Channel, ConfirmChannel } from 'amqplib'
import { describe, expect, it } from 'vitest'
import { deadLetterExchange, deadLetterQueue } from '../src/index.ts'
import {
  Rig,
  closedByBroker,
  deadLetter,
  type Hooks,
  Inbox,
  isOpen,
  type Line,
  lineOf,
  onRig,
  quarantine,
  retryIn,
  socketOf,
  until,
  watched,
  within,
} from './rig.ts'

/** 6 s: several times the longest wait before the third attempt to connect. */
const SOON_MS = 6_000

/** Breaks the connection while the answer to a channel close is on its way. */
function breaksWhileClosing(channel: Channel, { model }: Line): void {
  const close = channel.close.bind(channel)
  channel.close = () => {
    const answer = close()
    socketOf(model).destroy(new Error('gone'))
    return answer
  }
}

const linesFor = (lines: readonly Line[], purpose: Line['purpose']) =>
  lines.filter((line) => line.purpose === purpose)

/** The broker behind a proxy that can cut the connection silently. */
async function cable(url: string) {
  const { hostname, port, username, password } = new URL(url)
  const sockets = new Set<Socket>()
  const server = createServer((inner) => {
    const outer = dial(Number(port), hostname)
    for (const socket of [inner, outer]) {
      sockets.add(socket)
      socket.on('error', () => undefined)
    }
    inner.pipe(outer)
    outer.pipe(inner)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port: ownPort } = server.address() as { port: number }
  return {
    url: `amqp://${username}:${password}@127.0.0.1:${ownPort}`,
    cut() {
      for (const socket of sockets) socket.unpipe()
    },
    close() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

export function adversary(url: string): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(url, test)

  describe.concurrent('a connection that breaks at a critical time', () => {
    it(
      'continues consuming when a channel closes during a reconnect',
      on(async (rig) => {
        const onChannel: Hooks['onChannel'] = (channel, line, lines) => {
          const isSecond = linesFor(lines, 'consume').indexOf(line) === 1
          if (isSecond && line.channels.length === 1) breaksWhileClosing(channel, line)
        }
        const { inbox, lines } = await rig.start({ hooks: { onChannel } })
        closedByBroker(lineOf(lines, 'consume'))
        await rig.send('a')
        expect(await inbox.nth(1, { timeout: SOON_MS })).toBeDefined()
      }),
    )

    it(
      'finishes the hand-off when it breaks while a delay queue is declared',
      on(async (rig) => {
        const onChannel: Hooks['onChannel'] = (channel, line, lines) => {
          if (line.purpose === 'publish' && linesFor(lines, 'publish').length === 1) {
            breaksWhileClosing(channel, line)
          }
        }
        const { transport, inbox } = await rig.start({ hooks: { onChannel } })
        await rig.send('a')
        const delivery = await inbox.nth(1)
        const enacting = Promise.resolve(transport.enact(delivery, retryIn(250)))
        const { kind } = await within('an answer', enacting, { timeout: SOON_MS })
        // `done` when the next connection is open before the copy is published.
        expect(['unknown', 'done']).toContain(kind)
      }),
    )

    it(
      'returns or rejects the depth when it breaks while dead letters are counted',
      on(async (rig) => {
        await rig.makeQueue(deadLetterQueue(rig.queue))
        const onChannel: Hooks['onChannel'] = (channel, line) => {
          if (line.channels.length === 2) breaksWhileClosing(channel, line)
        }
        const source = rig.source({ connect: watched([], { onChannel }) })
        const asking = source.depth().catch(() => 'refused')
        expect(await within('an answer', asking, { timeout: SOON_MS })).toBeDefined()
      }),
    )

    it(
      'continues consuming when it breaks right after its channel was created',
      on(async (rig) => {
        const onChannel: Hooks['onChannel'] = async (channel, line, lines) => {
          const isSecond = linesFor(lines, 'consume').indexOf(line) === 1
          if (!isSecond || line.channels.length !== 2) return
          // As if the close of the broker were in the same packet as its answer.
          const closed = once(channel, 'close')
          socketOf(line.model).destroy(new Error('gone'))
          await closed
        }
        const { inbox, lines } = await rig.start({ hooks: { onChannel } })
        closedByBroker(lineOf(lines, 'consume'))
        await rig.send('a')
        expect(await inbox.nth(1, { timeout: SOON_MS })).toBeDefined()
      }),
    )

    it(
      'continues consuming when it breaks between prefetch and consume',
      on(async (rig) => {
        const onChannel: Hooks['onChannel'] = (channel, line, lines) => {
          if (linesFor(lines, 'consume').indexOf(line) !== 1) return
          const prefetch = channel.prefetch.bind(channel)
          channel.prefetch = async (count) => {
            const answer = await prefetch(count)
            socketOf(line.model).destroy(new Error('gone'))
            return answer
          }
        }
        const { inbox, lines } = await rig.start({ hooks: { onChannel } })
        closedByBroker(lineOf(lines, 'consume'))
        await rig.send('a')
        expect(await inbox.nth(1, { timeout: SOON_MS })).toBeDefined()
      }),
    )

    it(
      'subscribes again when the broker ends a subscription as it starts',
      on(async (rig) => {
        let isFirst = true
        const onChannel: Hooks['onChannel'] = (channel) => {
          const consume = channel.consume.bind(channel)
          channel.consume = async (queue, onMessage, options) => {
            const answer = await consume(queue, onMessage, options)
            if (isFirst) {
              isFirst = false
              await channel.cancel(answer.consumerTag)
              // As if the cancel of the broker were in the same packet as its confirmation.
              onMessage(null)
            }
            return answer
          }
        }
        const { inbox } = await rig.start({ hooks: { onChannel } })
        await rig.send('a')
        expect(await inbox.nth(1, { timeout: SOON_MS })).toBeDefined()
      }),
    )

    it(
      'applies the last of several quick calls of pause, resume and limit while disconnected',
      on(async (rig) => {
        let isAway = false
        const onConnect = () => {
          if (isAway) throw new Error('away')
        }
        const { transport, inbox, lines } = await rig.start({ hooks: { onConnect } })
        isAway = true
        for (const { model } of lines) socketOf(model).destroy(new Error('away'))
        for (let count = 1; count < 50; count++) {
          void transport.pause()
          transport.limit(count)
          transport.resume()
        }
        isAway = false
        await rig.send('a')
        await inbox.nth(1)
        const { consumerCount } = await rig.onChannel((channel) => channel.checkQueue(rig.queue))
        expect(consumerCount).toBe(1)
      }),
    )
  })

  describe.concurrent('a broker that rejects requests', () => {
    it(
      'requests the subscription less and less often',
      on(async (rig) => {
        // Like a user who may no longer read.
        let isForbidden = false
        const onChannel: Hooks['onChannel'] = (channel) => {
          const consume = channel.consume.bind(channel)
          channel.consume = (queue, ...request) =>
            consume(isForbidden ? `${queue}-forbidden` : queue, ...request)
        }
        const { lines } = await rig.start({ hooks: { onChannel } })
        isForbidden = true
        const startedAt = performance.now()
        closedByBroker(lineOf(lines, 'consume'))
        await until('six more connections', () => linesFor(lines, 'consume').length >= 7)
        // 100, 200, 400, 800 and 1600 ms, less up to half of each for jitter.
        expect(performance.now() - startedAt).toBeGreaterThan(1_500)
      }),
    )

    it(
      'leaves no unused connection open after replays',
      on(async (rig) => {
        const lines: Line[] = []
        let refusals = 3
        const onConnect: Hooks['onConnect'] = (purpose) => {
          if (purpose === 'publish' && refusals-- > 0) throw new Error('too many connections')
        }
        const source = rig.source({ connect: watched(lines, { onConnect }) })
        await until('it opens', async () => {
          const depth = await source.depth().catch(() => undefined)
          return depth === 0
        })
        expect(linesFor(lines, 'drain').filter(isOpen)).toHaveLength(1)
        await source.close()
        await until('all are closed', () => !lines.some(isOpen), { timeout: 3_000 })
      }),
    )

    it(
      'rejects open with instructions when the exchange has another type',
      on(async (rig) => {
        await rig.makeExchange(deadLetterExchange(rig.queue), 'topic')
        const error = await rig
          .transport()
          .open()
          .catch((reason: unknown) => reason)
        expect(isRedriveError(error, 'TOPOLOGY_MISMATCH')).toBe(true)
      }),
    )

    it.each([
      ['a slash', 'amqp://guest:s3/cret@127.0.0.1:1'],
      ['an at sign', 'amqp://guest:s3@cret@127.0.0.1:1'],
      ['a question mark', 'amqp://guest:s3?cret@127.0.0.1:1'],
      ['a hash', 'amqp://guest:s3#cret@127.0.0.1:1'],
    ])('never repeats a password with %s in it', async (_, address) => {
      const rig = await Rig.open(url)
      const error = await rig
        .transport({ url: address })
        .open()
        .catch((reason: unknown) => reason)
      await rig.clear()
      expect(isRedriveError(error, 'UNREACHABLE')).toBe(true)
      expect((error as Error).message).not.toContain('cret')
    })

    it(
      'lets the process end after close when the broker never answers',
      on(async (rig) => {
        const broker = await cable(url)
        const lines: Line[] = []
        const transport = rig.transport({ url: broker.url, connect: watched(lines) })
        await transport.open()
        await transport.receive(new Inbox())
        broker.cut()
        await within('closed', transport.close(), { timeout: SOON_MS })
        const left = lines.filter(({ model }) => !socketOf(model).destroyed)
        broker.close()
        expect(left).toHaveLength(0)
      }),
    )
  })

  describe.concurrent('dead letters are never lost', () => {
    it(
      'when one batch is released while another is being drained',
      on(async (rig) => {
        const queue = deadLetterQueue(rig.queue)
        await rig.makeQueue(queue)
        for (const body of ['a', 'b', 'c']) await rig.publish('', queue, body)
        const { promise: gate, resolve: openGate } = Promise.withResolvers<void>()
        let isFirst = true
        const onChannel: Hooks['onChannel'] = (channel) => {
          const cancel = channel.cancel.bind(channel)
          channel.cancel = async (tag) => {
            const isSlow = isFirst
            isFirst = false
            if (isSlow) await gate
            return cancel(tag)
          }
        }
        const source = rig.source({
          deadLetterQueues: [queue],
          connect: watched([], { onChannel }),
        })
        const slow = source.drain({ limit: 2 })
        await until('two are in flight', async () => (await rig.count(queue)) === 1)
        const quick = await source.drain({ limit: 1 })
        expect(quick.deadLetters).toHaveLength(1)
        await quick.release()
        openGate()
        expect((await slow).deadLetters).toHaveLength(2)
        await source.close()
        await until('both are back', async () => (await rig.count(queue)) === 2, {
          timeout: SOON_MS,
        })
      }),
    )

    it(
      'when another queue of the same batch cannot be drained',
      on(async (rig) => {
        const queue = deadLetterQueue(rig.queue)
        const locked = `${rig.queue}-locked`
        await rig.makeQueue(queue)
        await rig.publish('', queue, 'a')
        const source = rig.source({ deadLetterQueues: [queue, locked] })
        await rig.onChannel(async (channel) => {
          await channel.assertQueue(locked, { exclusive: true })
          await expect(source.drain({ limit: 10 })).rejects.toThrow(/RESOURCE.LOCKED/)
          await channel.deleteQueue(locked)
        })
        await until(
          'it is drained again',
          async () => (await source.drain({ limit: 10 })).deadLetters.length === 1,
          { timeout: 3_000 },
        )
      }),
    )

    it(
      'when the dead-letter queue was deleted: it is declared again',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send('a')
        const delivery = await inbox.nth(1)
        await rig.deleteQueue(deadLetterQueue(rig.queue))
        await until(
          'the hand-off is done',
          async () => (await transport.enact(delivery, deadLetter())).kind === 'done',
          { timeout: 3_000 },
        )
        expect(await rig.count(deadLetterQueue(rig.queue))).toBe(1)
      }),
    )
  })

  describe.concurrent('a message that is hard to copy', () => {
    it(
      'is dead-lettered although its headers leave no room for those of Redrive',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send('body', { headers: { filler: 'x'.repeat(65_400) } })
        const enactment = await transport.enact(await inbox.nth(1), deadLetter())
        expect(enactment).toMatchObject({ kind: 'done', destination: 'dead_letter' })
      }),
    )

    it(
      'is dead-lettered although a header table has a name that the client library uses itself',
      on(async (rig) => {
        let calls = 0
        const onConfirmChannel = (channel: ConfirmChannel) => {
          const publish = channel.publish.bind(channel)
          channel.publish = (...args) => {
            calls += 1
            return publish(...args)
          }
        }
        const { transport, inbox } = await rig.start({ hooks: { onConfirmChannel } })
        // Inherited names are written, and only own properties count as a type.
        const table = Object.create({ '!': 'boom', value: 1 }) as object
        await rig.send('body', { headers: { table } })
        const enactment = await transport.enact(await inbox.nth(1), deadLetter())
        expect(enactment).toMatchObject({ kind: 'done', destination: 'dead_letter' })
        // Older versions of amqplib must not see the headers that they cannot encode.
        expect(calls).toBe(1)
      }),
    )

    it(
      'is dead-lettered although it has ten thousand headers',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        const names = Array.from({ length: 10_000 }, (_, index) =>
          index.toString(36).padStart(3, '0'),
        )
        const headers = Object.fromEntries(names.map((name) => [name, true]))
        await rig.send('body', { headers })
        await transport.enact(await inbox.nth(1), retryIn(100))
        const second = await inbox.nth(2)
        expect(Object.keys(second.headers)).toHaveLength(10_000)
      }),
    )

    it(
      'is dead-lettered with 20 MB, and with an empty body',
      on(async (rig) => {
        const { transport, inbox } = await rig.start({ confirmTimeout: '20s' })
        const sizes = [20_000_000, 0]
        for (const [index, size] of sizes.entries()) {
          await rig.send(Buffer.alloc(size, 7))
          const delivery = await inbox.nth(2 * index + 1)
          expect(await transport.enact(delivery, retryIn(100))).toMatchObject({ kind: 'done' })
          const again = await inbox.nth(2 * index + 2)
          expect(again.bytes).toHaveLength(size)
          expect(Buffer.alloc(size, 7).equals(again.bytes)).toBe(true)
          await transport.enact(again, SETTLE)
        }
      }),
    )
  })

  describe.concurrent('repeated calls', () => {
    it(
      'send one copy when a retry is enacted twice concurrently',
      on(async (rig) => {
        let copies = 0
        const onConfirmChannel: Hooks['onConfirmChannel'] = (channel) => {
          const publish = channel.publish.bind(channel)
          channel.publish = (...request) => {
            copies += 1
            return publish(...request)
          }
        }
        const { transport, inbox } = await rig.start({ hooks: { onConfirmChannel } })
        await rig.send('a')
        const delivery = await inbox.nth(1)
        await Promise.all([
          transport.enact(delivery, retryIn(250)),
          transport.enact(delivery, retryIn(250)),
        ])
        expect(copies).toBe(1)
      }),
    )

    it(
      'open one channel for a hundred first retries',
      on(async (rig) => {
        const { transport, inbox, lines } = await rig.start({ limit: 100 })
        for (let number = 0; number < 100; number++) await rig.send(String(number))
        await inbox.nth(100)
        await Promise.all(
          inbox.deliveries.map(async (delivery) => transport.enact(delivery, retryIn(250))),
        )
        // One to publish, one to check the permission at the start, one to declare the delay queue.
        expect(lineOf(lines, 'publish').channels).toHaveLength(3)
      }),
    )

    it(
      'leave no connection behind when open is called twice',
      on(async (rig) => {
        const lines: Line[] = []
        const transport = rig.transport({ connect: watched(lines) })
        await transport.open()
        await transport.open().catch(() => undefined)
        await transport.close()
        await until('all are closed', () => !lines.some(isOpen), { timeout: 3_000 })
        expect(lines.length).toBeGreaterThanOrEqual(2)
      }),
    )

    it(
      'leave no connection behind when close is called during open',
      on(async (rig) => {
        for (const stage of [1, 2]) {
          const lines: Line[] = []
          const transport = rig.transport({ connect: watched(lines) })
          const opening = transport.open().catch((reason: unknown) => reason)
          await until('it connects', () => lines.length === stage)
          await transport.close()
          const error = await opening
          expect(error === undefined || isRedriveError(error, 'CLOSED')).toBe(true)
          await until('all are closed', () => !lines.some(isOpen), { timeout: 3_000 })
        }
      }),
    )

    it(
      'do not report dead letters as lost when a batch is released twice',
      on(async (rig) => {
        const queue = deadLetterQueue(rig.queue)
        await rig.makeQueue(queue)
        await rig.publish('', queue, 'a')
        const batch = await rig.source({ deadLetterQueues: [queue] }).drain({ limit: 1 })
        await batch.release()
        await expect(batch.release()).resolves.toBeUndefined()
      }),
    )

    it(
      'reject a release after close as lost',
      on(async (rig) => {
        const queue = deadLetterQueue(rig.queue)
        await rig.makeQueue(queue)
        await rig.publish('', queue, 'a')
        const source = rig.source({ deadLetterQueues: [queue] })
        const batch = await source.drain({ limit: 1 })
        await source.close()
        const error = await batch.release().catch((reason: unknown) => reason)
        expect(isRedriveError(error, 'DELIVERY_LOST')).toBe(true)
      }),
    )

    it(
      'report the real destination of the copy when another decision follows an unknown one',
      on(async (rig) => {
        const held: (() => void)[] = []
        const onConfirmChannel: Hooks['onConfirmChannel'] = (channel) => {
          const publish = channel.publish.bind(channel)
          channel.publish = (exchange, key, content, options, done) =>
            publish(exchange, key, content, options, (error, ok) => {
              held.push(() => done?.(error, ok))
            })
        }
        // After twice this time, the connection is replaced; a slow broker must answer before that.
        const { transport, inbox } = await rig.start({
          confirmTimeout: '2s',
          hooks: { onConfirmChannel },
        })
        await rig.send('a')
        const delivery = await inbox.nth(1)
        const first = await transport.enact(delivery, deadLetter())
        expect(first).toMatchObject({ kind: 'unknown' })
        await until('the broker has answered', () => held.length === 1)
        const second = transport.enact(delivery, quarantine())
        held[0]?.()
        expect(await second).toMatchObject({ kind: 'done', destination: 'dead_letter' })
      }),
    )
  })
}
