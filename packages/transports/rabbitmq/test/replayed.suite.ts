import { ALREADY_HANDLED, type Drop, FIRST_CYCLE, SETTLE } from '@redrive/core'
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

/** A message as a replay brings it. */
const replayed = (id: string) => ({
  messageId: `m-${id}`,
  headers: { 'redrive-id': `m-${id}`, 'redrive-version': '1', 'redrive-replay-id': id },
})

const outcomesOf = (confirmations: readonly ReplayConfirmation[]) =>
  confirmations.map(({ replayId, outcome }) => `${replayId} ${outcome}`).toSorted()

/** So many confirmations in the queue, as a consumer wrote them. */
async function confirmed(rig: Rig, count: number): Promise<void> {
  const { transport, inbox } = await rig.start()
  for (let number = 0; number < count; number++) await rig.send('body', replayed(`r-${number}`))
  await inbox.nth(count)
  await Promise.all(inbox.deliveries.map(async (delivery) => transport.enact(delivery, SETTLE)))
  await transport.close()
}

/** Calls back later what the broker says about confirmations: its answer is on its way for so long. */
function heldConfirms(rig: Rig): { readonly hooks: Hooks; readonly letGo: () => void } {
  const held: (() => void)[] = []
  let isOpen = false
  const onConfirmChannel: Hooks['onConfirmChannel'] = (channel) => {
    const publish = channel.publish.bind(channel)
    channel.publish = (exchange, key, content, options, callback) =>
      publish(exchange, key, content, options, (error, ok) => {
        const tell = () => callback?.(error, ok)
        if (isOpen || key !== replayedQueue(rig.queue)) tell()
        else held.push(tell)
      })
  }
  const letGo = () => {
    // A slow broker may answer only after this.
    isOpen = true
    for (const tell of held.splice(0)) tell()
  }
  return { hooks: { onConfirmChannel }, letGo }
}

/**
 * The confirmations in the queue, all of them, which must be so many: a slow broker may take more than
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
    batches.push(await source.confirmations({ most: 10 }))
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
      'a plain message makes no confirmation, and no queue for them',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        for (const body of ['handled', 'dropped']) await rig.send(body)
        await inbox.nth(2)
        const [handled, dropped] = inbox.deliveries
        if (handled === undefined || dropped === undefined) throw new Error('nothing came')
        // At once: nothing is waited for.
        expect(transport.enact(handled, SETTLE)).toMatchObject({ place: 'settled' })
        expect(transport.enact(dropped, DROP)).toMatchObject({ place: 'dropped' })
        expect(await rig.count(replayedQueue(rig.queue))).toBeUndefined()
      }),
    )

    it(
      'says what became of each, and for how long the broker keeps that',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        const before = Date.now()
        for (const id of ['r-1', 'r-2', 'r-3']) await rig.send('body', replayed(id))
        await inbox.nth(3)
        const places = await Promise.all(
          [SETTLE, ALREADY_HANDLED, DROP].map(async (decision, index) => {
            const delivery = inbox.deliveries.find(({ replayId }) => replayId === `r-${index + 1}`)
            if (delivery === undefined) throw new Error('it did not come')
            return transport.enact(delivery, decision)
          }),
        )
        expect(places).toMatchObject(
          ['settled', 'settled', 'dropped'].map((place) => ({ kind: 'done', place })),
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
      'is stored before the message is acknowledged: a connection lost between the two brings it again',
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
        expect(await transport.enact(again, ALREADY_HANDLED)).toMatchObject({ place: 'settled' })
        const { confirmations } = await allInHand(rig, rig.source(), 2)
        expect(outcomesOf(confirmations)).toEqual(['r-1 already_handled', 'r-1 handled'])
      }),
    )

    it(
      'is unknown while the broker does not answer, and asking again makes no second one',
      on(async (rig) => {
        const { hooks, letGo } = heldConfirms(rig)
        // After twice that the connection would be left: so long a slow broker has to answer.
        const { transport, inbox, lines } = await rig.start({ hooks, confirmTimeout: '2s' })
        await rig.send('body', replayed('r-1'))
        const delivery = await inbox.nth(1)
        expect(await transport.enact(delivery, SETTLE)).toMatchObject({ kind: 'unknown' })
        const second = transport.enact(delivery, SETTLE)
        letGo()
        expect(await second).toMatchObject({ kind: 'done', place: 'settled' })
        expect(await transport.enact(delivery, SETTLE)).toEqual({ kind: 'lost' })
        expect(await rig.count(replayedQueue(rig.queue))).toBe(1)
        closedByBroker(lineOf(lines, 'consume'))
        await until('a new connection', () => lines.filter(isConsuming).length === 2)
        expect(await rig.count(rig.queue)).toBe(0)
      }),
    )

    it(
      'makes its queue anew when someone deleted it',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send('body', replayed('r-1'))
        await transport.enact(await inbox.nth(1), SETTLE)
        await rig.deleteQueue(replayedQueue(rig.queue))
        await rig.send('body', replayed('r-2'))
        const delivery = await inbox.nth(2)
        expect(await transport.enact(delivery, SETTLE)).toMatchObject({ kind: 'unknown' })
        expect(await transport.enact(delivery, SETTLE)).toMatchObject({ place: 'settled' })
        expect(await rig.count(replayedQueue(rig.queue))).toBe(1)
      }),
    )
  })

  describe.concurrent('reading confirmations', () => {
    it(
      'takes no more than asked, and keeps them until they are released',
      on(async (rig) => {
        await confirmed(rig, 5)
        const crashed = rig.source()
        const seen: string[] = []
        await until('all', async () => {
          const { confirmations } = await crashed.confirmations({ most: 2 })
          expect(confirmations.length).toBeLessThanOrEqual(2)
          seen.push(...confirmations.map(({ replayId }) => replayId))
          return seen.length >= 5
        })
        // What is in hand is not handed out again.
        expect(seen.toSorted()).toEqual(['r-0', 'r-1', 'r-2', 'r-3', 'r-4'])
        // They are no dead letters.
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
      'skips what it cannot read and lets go of it',
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
        // Nothing but those: there is nothing to release.
        await rig.publish('', queue, 'not ours')
        await allInHand(rig, source, 0)
        await source.close()
        expect(await rig.count(queue)).toBe(0)
      }),
    )

    it(
      'asks rarely for a queue that is not there, and soon after a replay went out',
      on(async (rig) => {
        const lines: Line[] = []
        const source = rig.source({ connect: watched(lines) })
        const looks = () => lineOf(lines, 'drain').channels.length
        expect((await source.confirmations({ most: 10 })).confirmations).toEqual([])
        const before = looks()
        for (let times = 0; times < 20; times++) await source.confirmations({ most: 10 })
        expect(looks()).toBe(before)
        await until('it is found once it is there', async () => {
          if ((await rig.count(replayedQueue(rig.queue))) === undefined) await confirmed(rig, 1)
          return (await source.confirmations({ most: 10 })).confirmations.length === 1
        })
      }),
    )

    it(
      'says so when the connection was lost before the release',
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

  describe.concurrent('naming dead letters', () => {
    for (const type of ['quorum', 'classic']) {
      const named = `of a ${type} queue`

      it(
        `one ${named} without an id was never drained, or may have been`,
        on(async (rig) => {
          const queue = `${rig.queue}-error`
          await rig.makeQueue(queue, { 'x-queue-type': type })
          await rig.publish('', queue, 'body')
          const lines: Line[] = []
          const source = rig.source({ deadLetterQueues: [queue], connect: watched(lines) })
          const namings: (string | undefined)[] = []
          const naming = async () => {
            await until('it is there', async () => (await rig.count(queue)) === 1)
            const batch = await source.drain({ most: 1 })
            namings.push(batch.deadLetters[0]?.naming)
            return batch
          }
          await naming()
          closedByBroker(lineOf(lines, 'drain'))
          const batch = await naming()
          await batch.abandon()
          await naming()
          expect(namings).toEqual(['unnamed', 'unnamed_again', 'unnamed_again'])
        }),
      )

      it(
        `one ${named} that was returned before it was lost may have been drained`,
        on(async (rig) => {
          const queue = `${rig.queue}-error`
          await rig.makeQueue(queue, { 'x-queue-type': type })
          await rig.publish('', queue, 'body')
          const source = rig.source({ deadLetterQueues: [queue] })
          await (await source.drain({ most: 1 })).abandon()
          await until('it is back', async () => (await rig.count(queue)) === 1)
          const { deadLetters } = await source.drain({ most: 1 })
          expect(deadLetters[0]?.naming).toBe('unnamed_again')
        }),
      )
    }

    it(
      'with an id of its producer or of ours it is named',
      on(async (rig) => {
        const queue = `${rig.queue}-error`
        await rig.makeQueue(queue)
        await rig.publish('', queue, 'theirs', { messageId: 'm-1' })
        await rig.publish('', queue, 'ours', {
          headers: { 'redrive-version': '1', 'redrive-id': 'm-2' },
        })
        const { deadLetters } = await rig.source({ deadLetterQueues: [queue] }).drain({ most: 2 })
        expect(deadLetters.map(({ naming, delivery }) => `${delivery.id} ${naming}`)).toEqual([
          'm-1 named',
          'm-2 named',
        ])
      }),
    )
  })

  describe.concurrent('an edited replay', () => {
    it(
      'goes out as it was edited and is the same message for everyone else, through retries and dead letters',
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
        const batch = await source.drain({ most: 1 })
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
        const again = await source.drain({ most: 1 })
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
