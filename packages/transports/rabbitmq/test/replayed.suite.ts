import { type Drop, FIRST_CYCLE, SETTLE } from '@redrive/core'
import { ALREADY_HANDLED } from '@redrive/core/internal'
import type { ConfirmationBatch, ReplayConfirmation } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import { deadLetterQueue, type RabbitMqSource, replayedQueue } from '../src/index.ts'
import {
  closedByBroker,
  deadLetter,
  type Hooks,
  type Line,
  lineOf,
  onRig,
  type Rig,
  retryIn,
  until,
  watched,
} from './rig.ts'

const DROP = { kind: 'drop', reason: 'filtered', cycle: FIRST_CYCLE } as Drop

/** Returns a message with the headers of a replay. */
const replayed = (id: string) => ({
  messageId: `m-${id}`,
  headers: { 'redrive-id': `m-${id}`, 'redrive-version': '1', 'redrive-replay-id': id },
})

const outcomesOf = (confirmations: readonly ReplayConfirmation[]) =>
  confirmations.map(({ replayId, outcome }) => `${replayId} ${outcome}`).toSorted()

/** Publishes this number of confirmations, as a consumer writes them. */
async function confirmed(rig: Rig, count: number): Promise<void> {
  const { transport, inbox } = await rig.start()
  for (let number = 0; number < count; number++) await rig.send('body', replayed(`r-${number}`))
  await inbox.nth(count)
  await Promise.all(inbox.deliveries.map(async (delivery) => transport.enact(delivery, SETTLE)))
  await transport.close()
}

/** Delays the broker's confirms for replay confirmations until `release` is called. */
function heldConfirms(rig: Rig): { readonly hooks: Hooks; readonly letGo: () => void } {
  const held: (() => void)[] = []
  let isOpen = false
  const onConfirmChannel: Hooks['onConfirmChannel'] = (channel) => {
    const publish = channel.publish.bind(channel)
    channel.publish = (exchange, key, content, options, callback) =>
      publish(exchange, key, content, options, (error, ok) => {
        const confirm = () => callback?.(error, ok)
        if (isOpen || key !== replayedQueue(rig.queue)) confirm()
        else held.push(confirm)
      })
  }
  const letGo = () => {
    // A slow broker may answer only after this.
    isOpen = true
    for (const confirm of held.splice(0)) confirm()
  }
  return { hooks: { onConfirmChannel }, letGo }
}

/**
 * Reads all confirmations in the queue and checks their number: a slow broker may need more than
 * one batch. They are kept until all are released or abandoned.
 */
async function allInHand(
  rig: Rig,
  source: RabbitMqSource,
  count: number,
): Promise<ConfirmationBatch> {
  const batches: ConfirmationBatch[] = []
  const found = () => batches.flatMap(({ confirmations }) => confirmations)
  await until(`${count} confirmations, and nothing else in the queue`, async () => {
    batches.push(await source.confirmations({ limit: 10 }))
    return found().length >= count && (await rig.count(replayedQueue(rig.queue))) === 0
  })
  const confirmations = found()
  expect(confirmations).toHaveLength(count)
  const each = async (end: (batch: ConfirmationBatch) => Promise<void>) => {
    for (const batch of batches) await end(batch)
  }
  return {
    confirmations,
    release: () => each((batch) => batch.release()),
    abandon: () => each((batch) => batch.abandon()),
  }
}

export function confirmingReplays(url: string): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(url, test)

  describe.concurrent('confirming replays', () => {
    it(
      'stores no confirmation for a message that is not a replay, and declares no queue',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        for (const body of ['handled', 'dropped']) await rig.send(body)
        await inbox.nth(2)
        const [handled, dropped] = inbox.deliveries
        if (handled === undefined || dropped === undefined) throw new Error('nothing came')
        // Synchronously, without waiting.
        expect(transport.enact(handled, SETTLE)).toMatchObject({ destination: 'settled' })
        expect(transport.enact(dropped, DROP)).toMatchObject({ destination: 'dropped' })
        expect(await rig.count(replayedQueue(rig.queue))).toBeUndefined()
      }),
    )

    it(
      'stores the outcome of each replay with a time to live',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        const before = Date.now()
        for (const id of ['r-1', 'r-2', 'r-3']) await rig.send('body', replayed(id))
        await inbox.nth(3)
        const enactments = await Promise.all(
          [SETTLE, ALREADY_HANDLED, DROP].map(async (decision, index) => {
            const delivery = inbox.deliveries.find(({ replayId }) => replayId === `r-${index + 1}`)
            if (delivery === undefined) throw new Error('it did not come')
            return transport.enact(delivery, decision)
          }),
        )
        expect(enactments).toMatchObject(
          ['settled', 'settled', 'dropped'].map((destination) => ({ kind: 'done', destination })),
        )
        expect(await rig.count(rig.queue)).toBe(0)
        const batch = await allInHand(rig, rig.source(), 3)
        expect(outcomesOf(batch.confirmations)).toEqual([
          'r-1 handled',
          'r-2 already_handled',
          'r-3 dropped',
        ])
        for (const { at } of batch.confirmations) {
          expect(at).toBeGreaterThanOrEqual(before)
          expect(at).toBeLessThanOrEqual(Date.now())
        }
        await batch.abandon()
        await until('they are back', async () => (await rig.count(replayedQueue(rig.queue))) === 3)
        const { properties } = await rig.take(replayedQueue(rig.queue))
        expect(properties).toMatchObject({ expiration: '1209600000', deliveryMode: 2 })
      }),
    )

    it(
      'stores it before the acknowledgement: after a lost connection between the two, it is stored again',
      on(async (rig) => {
        let isFirst = true
        const onChannel: Hooks['onChannel'] = (channel, line) => {
          const ack = channel.ack.bind(channel)
          channel.ack = (message, allUpTo) => {
            if (!isFirst || line.purpose !== 'consume') return ack(message, allUpTo)
            isFirst = false
            closedByBroker(line)
          }
        }
        const { transport, inbox } = await rig.start({ hooks: { onChannel } })
        await rig.send('body', replayed('r-1'))
        expect(await transport.enact(await inbox.nth(1), SETTLE)).toEqual({ kind: 'lost' })
        const again = await inbox.nth(2)
        expect(again.replayId).toBe('r-1')
        expect(await transport.enact(again, ALREADY_HANDLED)).toMatchObject({
          destination: 'settled',
        })
        const { confirmations } = await allInHand(rig, rig.source(), 2)
        expect(outcomesOf(confirmations)).toEqual(['r-1 already_handled', 'r-1 handled'])
      }),
    )

    it(
      'is unknown while the broker does not answer, and a repeated call stores no second one',
      on(async (rig) => {
        const { hooks, letGo } = heldConfirms(rig)
        // After twice this time, the connection is replaced; a slow broker must answer before that.
        const { transport, inbox, lines } = await rig.start({ hooks, confirmTimeout: '2s' })
        await rig.send('body', replayed('r-1'))
        const delivery = await inbox.nth(1)
        expect(await transport.enact(delivery, SETTLE)).toMatchObject({ kind: 'unknown' })
        const second = transport.enact(delivery, SETTLE)
        letGo()
        expect(await second).toMatchObject({ kind: 'done', destination: 'settled' })
        expect(await transport.enact(delivery, SETTLE)).toEqual({ kind: 'lost' })
        expect(await rig.count(replayedQueue(rig.queue))).toBe(1)
        closedByBroker(lineOf(lines, 'consume'))
        await until('a new connection', () => lines.filter(isConsuming).length === 2)
        expect(await rig.count(rig.queue)).toBe(0)
      }),
    )

    it(
      'declares its queue again when it was deleted',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send('body', replayed('r-1'))
        await transport.enact(await inbox.nth(1), SETTLE)
        await rig.deleteQueue(replayedQueue(rig.queue))
        await rig.send('body', replayed('r-2'))
        const delivery = await inbox.nth(2)
        expect(await transport.enact(delivery, SETTLE)).toMatchObject({ kind: 'refused' })
        expect(await transport.enact(delivery, SETTLE)).toMatchObject({ destination: 'settled' })
        expect(await rig.count(replayedQueue(rig.queue))).toBe(1)
      }),
    )
  })

  describe.concurrent('reading confirmations', () => {
    it(
      'takes no more than the limit, and keeps them until they are released',
      on(async (rig) => {
        await confirmed(rig, 5)
        const crashed = rig.source()
        const seen: string[] = []
        await until('all', async () => {
          const { confirmations } = await crashed.confirmations({ limit: 2 })
          expect(confirmations.length).toBeLessThanOrEqual(2)
          seen.push(...confirmations.map(({ replayId }) => replayId))
          return seen.length >= 5
        })
        // Unacknowledged messages are not delivered again.
        expect(seen.toSorted()).toEqual(['r-0', 'r-1', 'r-2', 'r-3', 'r-4'])
        // They are not dead letters.
        expect(await crashed.depth()).toBe(0)
        await crashed.close()
        const queue = replayedQueue(rig.queue)
        await until('they are back', async () => (await rig.count(queue)) === 5)
        const source = rig.source()
        const batch = await allInHand(rig, source, 5)
        await batch.release()
        await source.close()
        expect(await rig.count(queue)).toBe(0)
      }),
    )

    it(
      'skips and releases unreadable messages',
      on(async (rig) => {
        await confirmed(rig, 1)
        const queue = replayedQueue(rig.queue)
        await rig.publish('', queue, 'not ours')
        await rig.publish('', queue, '{"version":9}')
        const source = rig.source()
        const batch = await allInHand(rig, source, 1)
        expect(outcomesOf(batch.confirmations)).toEqual(['r-0 handled'])
        await batch.abandon()
        await until('one is back', async () => (await rig.count(queue)) === 1)
        await rig.take(queue)
        // Only unreadable messages: nothing is left to release.
        await rig.publish('', queue, 'not ours')
        await allInHand(rig, source, 0)
        await source.close()
        expect(await rig.count(queue)).toBe(0)
      }),
    )

    it(
      'checks rarely for a missing queue, and soon after a replay was published',
      on(async (rig) => {
        const lines: Line[] = []
        const source = rig.source({ connect: watched(lines) })
        const looks = () => lineOf(lines, 'drain').channels.length
        expect((await source.confirmations({ limit: 10 })).confirmations).toEqual([])
        const before = looks()
        for (let times = 0; times < 20; times++) await source.confirmations({ limit: 10 })
        expect(looks()).toBe(before)
        await until('it is found when it exists', async () => {
          if ((await rig.count(replayedQueue(rig.queue))) === undefined) await confirmed(rig, 1)
          return (await source.confirmations({ limit: 10 })).confirmations.length === 1
        })
      }),
    )

    it(
      'rejects when the connection was lost before the release',
      on(async (rig) => {
        await confirmed(rig, 1)
        const lines: Line[] = []
        const source = rig.source({ connect: watched(lines) })
        const lost = await allInHand(rig, source, 1)
        const before = lineOf(lines, 'drain')
        closedByBroker(before)
        await until('a new connection', () => lineOf(lines, 'drain') !== before)
        await expect(lost.release()).rejects.toMatchObject({ code: 'DELIVERY_LOST' })
        const again = await allInHand(rig, source, 1)
        expect(outcomesOf(again.confirmations)).toEqual(['r-0 handled'])
      }),
    )
  })

  describe.concurrent('identity of dead letters', () => {
    for (const type of ['quorum', 'classic']) {
      const named = `in a ${type} queue`

      it(
        `of a message ${named} without an id shows whether it may have been drained before`,
        on(async (rig) => {
          const queue = `${rig.queue}-error`
          await rig.makeQueue(queue, { 'x-queue-type': type })
          await rig.publish('', queue, 'body')
          const lines: Line[] = []
          const source = rig.source({ deadLetterQueues: [queue], connect: watched(lines) })
          const identities: (string | undefined)[] = []
          const drainOne = async () => {
            await until('it is in the queue', async () => (await rig.count(queue)) === 1)
            const batch = await source.drain({ limit: 1 })
            identities.push(batch.deadLetters[0]?.identity)
            return batch
          }
          await drainOne()
          closedByBroker(lineOf(lines, 'drain'))
          const batch = await drainOne()
          await batch.abandon()
          await drainOne()
          expect(identities).toEqual([
            'generated',
            'generated_redelivered',
            'generated_redelivered',
          ])
        }),
      )

      it(
        `of a message ${named} that was returned and then lost: it may have been drained before`,
        on(async (rig) => {
          const queue = `${rig.queue}-error`
          await rig.makeQueue(queue, { 'x-queue-type': type })
          await rig.publish('', queue, 'body')
          const source = rig.source({ deadLetterQueues: [queue] })
          await (await source.drain({ limit: 1 })).abandon()
          await until('it is back', async () => (await rig.count(queue)) === 1)
          const { deadLetters } = await source.drain({ limit: 1 })
          expect(deadLetters[0]?.identity).toBe('generated_redelivered')
        }),
      )
    }

    it(
      'is stable with an id of the producer or of Redrive',
      on(async (rig) => {
        const queue = `${rig.queue}-error`
        await rig.makeQueue(queue)
        await rig.publish('', queue, 'theirs', { messageId: 'm-1' })
        await rig.publish('', queue, 'ours', {
          headers: { 'redrive-version': '1', 'redrive-id': 'm-2' },
        })
        const { deadLetters } = await rig.source({ deadLetterQueues: [queue] }).drain({ limit: 2 })
        expect(deadLetters.map(({ identity, delivery }) => `${delivery.id} ${identity}`)).toEqual([
          'm-1 stable',
          'm-2 stable',
        ])
      }),
    )
  })

  describe.concurrent('an edited replay', () => {
    it(
      'is published with its edits and keeps its identity through retries and dead letters',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        const properties = {
          messageId: 'm-1',
          correlationId: 'c-1',
          contentType: 'application/json',
          contentEncoding: 'identity',
          headers: { mine: 'yes', 'redrive-key': 'order-1' },
        }
        await rig.send('{"a":1}', properties)
        const first = await inbox.nth(1)
        expect('replaces' in first).toBe(false)
        await transport.enact(first, deadLetter())
        const source = rig.source()
        const edit = { bytes: Buffer.from('{"a":2}'), key: 'order-1/2', replaces: 'order-1' }
        const batch = await source.drain({ limit: 1 })
        for (const letter of batch.deadLetters) {
          const delivery = { ...letter.delivery, ...edit }
          await source.publish({ deadLetter: { ...letter, delivery }, replayId: 'r-1' })
        }
        await batch.release()
        const check = async (nth: number) => {
          const delivery = await inbox.nth(nth)
          const { key, replaces, id, raw } = delivery
          expect(delivery.headers).toEqual({ mine: 'yes' })
          expect({ key, replaces, id, body: raw.content.toString() }).toEqual({
            key: 'order-1/2',
            replaces: 'order-1',
            id: 'm-1',
            body: '{"a":2}',
          })
          const { messageId, correlationId, contentType, contentEncoding } =
            raw.properties as unknown as Record<string, unknown>
          const { headers: _, ...expected } = properties
          expect({ messageId, correlationId, contentType, contentEncoding }).toEqual(expected)
          return delivery
        }
        await transport.enact(await check(2), retryIn(100))
        await transport.enact(await check(3), deadLetter())
        expect(await rig.count(deadLetterQueue(rig.queue))).toBe(1)
        const again = await source.drain({ limit: 1 })
        const [letter] = again.deadLetters
        if (letter === undefined) throw new Error('nothing was drained')
        expect(letter.delivery).toMatchObject({ key: 'order-1/2', replaces: 'order-1' })
        await source.publish({ deadLetter: letter, replayId: 'r-2' })
        expect((await check(4)).replayId).toBe('r-2')
      }),
    )
  })
}

const isConsuming = ({ purpose }: Line) => purpose === 'consume'
