import { type Drop, FIRST_CYCLE } from '@redrive/core'
import { ALREADY_HANDLED } from '@redrive/core/internal'
import type { DrainedDeadLetter, ReplayConfirmation } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import {
  deadLetterTopic,
  type KafkaOptions,
  type KafkaSource,
  replayedTopic,
  retryTopic,
} from '../src/index.ts'
import { OFFSET_COMMIT, Process } from './process.ts'
import {
  deadLetter,
  failedCycle,
  onRig,
  type Rig,
  retryIn,
  type SentRecord,
  SETTLE,
  textOf,
  until,
} from './rig.ts'

const DROP = { kind: 'drop', reason: 'filtered', cycle: FIRST_CYCLE } as Drop
/** Request type of the protocol. */
const PRODUCE = 0

/** Returns a record with the headers of a replay. */
const replayed = (id: string, partition = 0): SentRecord => ({
  partition,
  key: 'k',
  headers: [
    ['redrive-version', '1'],
    ['redrive-id', `m-${id}`],
    ['redrive-replay-id', id],
  ],
})

const outcomesOf = (confirmations: readonly ReplayConfirmation[]) =>
  confirmations.map(({ replayId, outcome }) => `${replayId} ${outcome}`).toSorted()

/** Waits for this number of confirmations, releases and returns them. */
async function heard(source: KafkaSource, count: number): Promise<readonly ReplayConfirmation[]> {
  const found: ReplayConfirmation[] = []
  await until(`${count} confirmations`, async () => {
    const batch = await source.confirmations({ limit: 100 })
    found.push(...batch.confirmations)
    await batch.release()
    return found.length >= count
  })
  return found
}

async function onlyLetter(source: KafkaSource): Promise<DrainedDeadLetter> {
  const found: DrainedDeadLetter[] = []
  await until('a dead letter', async () => {
    const batch = await source.drain({ limit: 10 })
    found.push(...batch.deadLetters)
    await batch.release()
    return found.length > 0
  })
  expect(found).toHaveLength(1)
  return found[0] as DrainedDeadLetter
}

export function confirmingReplays(brokers: readonly string[]): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(brokers, test, { partitions: 2 })

  const MODES: Readonly<Record<string, Partial<KafkaOptions>>> = {
    'copy and commit': { handOff: 'atLeastOnce' },
    'a transaction': { handOff: 'transactional' },
    'lane order': { order: 'lane' },
  }

  describe.concurrent('confirming replays', () => {
    for (const [mode, options] of Object.entries(MODES)) {
      it(
        `stores the outcome of each replay, and nothing for other records (${mode})`,
        on(async (rig) => {
          const { transport, inbox } = await rig.start(options)
          const before = Date.now()
          await rig.send({ value: 'plain' })
          await transport.enact(await inbox.nth(1), SETTLE)
          await rig.send({ value: 'plain' })
          await transport.enact(await inbox.nth(2), DROP)
          const decisions = [SETTLE, ALREADY_HANDLED, DROP]
          for (const [index, decision] of decisions.entries()) {
            await rig.send(replayed(`r-${index}`, index % 2))
            const enactment = await transport.enact(await inbox.nth(3 + index), decision)
            const destination = decision === DROP ? 'dropped' : 'settled'
            expect(enactment).toEqual({ kind: 'done', destination, truncated: 0 })
          }
          const confirmations = await heard(rig.source(), 3)
          expect(outcomesOf(confirmations)).toEqual([
            'r-0 handled',
            'r-1 already_handled',
            'r-2 dropped',
          ])
          for (const { at } of confirmations) {
            expect(at).toBeGreaterThanOrEqual(before)
            expect(at).toBeLessThanOrEqual(Date.now())
          }
          const stored = await rig.read(replayedTopic(rig.topic, rig.group))
          expect(stored.map(({ partition }) => partition)).toEqual([0, 0, 1])
        }),
      )
    }

    it(
      'does not delay a record that is not a replay',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send({ value: 'plain' })
        expect(transport.enact(await inbox.nth(1), SETTLE)).toMatchObject({
          destination: 'settled',
        })
      }),
    )

    it(
      'stores it before the commit: after a crash between the two, it is stored again',
      on(async (rig) => {
        let isArmed = false
        const process: Process = new Process((apiKey, send, callback) => {
          if (!isArmed) return send()
          if (apiKey === OFFSET_COMMIT) return process.die()
          send(callback)
        })
        const dying = await rig.start({ process })
        await rig.send(replayed('r-1'))
        const first = await dying.inbox.nth(1)
        isArmed = true
        void dying.transport.enact(first, SETTLE)
        await until('it died', () => !process.isAlive)
        const { transport, inbox } = await rig.start()
        const again = await inbox.nth(1, { timeout: 30_000 })
        expect(again.replayId).toBe('r-1')
        await transport.enact(again, ALREADY_HANDLED)
        expect(outcomesOf(await heard(rig.source(), 2))).toEqual([
          'r-1 already_handled',
          'r-1 handled',
        ])
      }),
      60_000,
    )

    it(
      'is unknown while the broker does not answer, and a repeated call stores no second one',
      on(async (rig) => {
        const held: (() => void)[] = []
        let isHolding = false
        const process = new Process((apiKey, send, callback) => {
          if (!isHolding || apiKey !== PRODUCE) return send()
          send((...answer) => held.push(() => callback(...answer)))
        })
        const { transport, inbox } = await rig.start({ process, confirmTimeout: '2s' })
        await rig.send(replayed('r-1'))
        const delivery = await inbox.nth(1)
        isHolding = true
        expect(await transport.enact(delivery, SETTLE)).toMatchObject({ kind: 'unknown' })
        await until('the broker has answered', () => held.length === 1)
        isHolding = false
        const second = transport.enact(delivery, SETTLE)
        for (const resume of held) resume()
        expect(await second).toMatchObject({ kind: 'done', destination: 'settled' })
        expect(await transport.enact(delivery, SETTLE)).toEqual({ kind: 'lost' })
        expect(await rig.read(replayedTopic(rig.topic, rig.group))).toHaveLength(1)
        const marks = (await rig.committed()).map(({ offset }) => offset)
        expect(marks).toEqual([1, 0])
      }),
    )
  })

  describe.concurrent('reading confirmations', () => {
    const confirmed = async (rig: Rig, count: number) => {
      const { transport, inbox } = await rig.start()
      for (let index = 0; index < count; index++) {
        await rig.send(replayed(`r-${index}`, index % rig.partitions))
      }
      await inbox.nth(count)
      await Promise.all(inbox.deliveries.map(async (delivery) => transport.enact(delivery, SETTLE)))
    }

    it(
      'keeps them until they are released, and takes no more than the limit',
      on(async (rig) => {
        await confirmed(rig, 5)
        const crashed = rig.source()
        const seen = new Set<string>()
        await until('all', async () => {
          const { confirmations } = await crashed.confirmations({ limit: 2 })
          expect(confirmations.length).toBeLessThanOrEqual(2)
          for (const { replayId } of confirmations) seen.add(replayId)
          return seen.size === 5
        })
        expect(await crashed.depth()).toBe(0)
        await crashed.close()
        const source = rig.source()
        expect(await heard(source, 5)).toHaveLength(5)
        await source.close()
        expect((await rig.source().confirmations({ limit: 10 })).confirmations).toEqual([])
      }),
    )

    it(
      'returns abandoned confirmations again, and never unreadable ones',
      on(async (rig) => {
        await confirmed(rig, 1)
        const topic = replayedTopic(rig.topic, rig.group)
        for (const value of ['not ours', '{"version":9}', null]) await rig.send({ value }, topic)
        const source = rig.source()
        let abandoned = 0
        await until('it comes again', async () => {
          const batch = await source.confirmations({ limit: 10 })
          abandoned += batch.confirmations.length
          await batch.abandon()
          return abandoned >= 2
        })
        expect(outcomesOf(await heard(source, 1))).toEqual(['r-0 handled'])
        await rig.send({ value: 'not ours' }, topic)
        await rig.send(
          { value: '{"version":1,"replayId":"r-9","outcome":"handled","at":1}' },
          topic,
        )
        expect(outcomesOf(await heard(source, 1))).toEqual(['r-9 handled'])
      }),
    )

    it(
      'returns immediately without a confirmation topic, and reads it when it exists',
      on(async (rig) => {
        const source = rig.source()
        const before = performance.now()
        for (let times = 0; times < 20; times++) {
          expect((await source.confirmations({ limit: 10 })).confirmations).toEqual([])
        }
        expect(performance.now() - before).toBeLessThan(5_000)
        await confirmed(rig, 1)
        expect(outcomesOf(await heard(source, 1))).toEqual(['r-0 handled'])
      }),
    )
  })

  describe.concurrent('the destination of a replay', () => {
    it(
      'is only the group that failed; after another failure it is a dead letter of the same source',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        const other = await rig.start({ group: `${rig.group}.other` })
        await rig.send({ value: 'body', key: 'k', partition: 1 })
        await transport.enact(await inbox.nth(1), deadLetter())
        await other.transport.enact(await other.inbox.nth(1), SETTLE)
        const source = rig.source()
        await source.publish({ deadLetter: await onlyLetter(source), replayId: 'r-1' })
        const again = await inbox.nth(2)
        expect(again).toMatchObject({
          source: rig.topic,
          replayId: 'r-1',
          cycle: { number: 2, attempts: 0 },
          raw: { partition: 1 },
        })
        expect(again.lane).toBe('k')
        await transport.enact(again, deadLetter({ ...failedCycle(1), number: 2 }))
        const second = await onlyLetter(source)
        expect(second).toMatchObject({
          origin: rig.topic,
          envelope: { partition: '1', replayTo: retryTopic(rig.topic, rig.group, 250) },
          delivery: { source: rig.topic, replayId: 'r-1', cycle: { number: 2 } },
        })
        await source.publish({ deadLetter: second, replayId: 'r-2' })
        expect((await inbox.nth(3)).cycle.number).toBe(3)
        // A later record has arrived, so an earlier one would have arrived too.
        await rig.send({ value: 'last', partition: 1 })
        await other.inbox.nth(2)
        expect(other.inbox.bodies).toEqual(['body', 'last'])
        expect((await rig.read(rig.topic)).map(textOf)).toEqual(['body', 'last'])
      }),
    )

    it(
      'is the source in lane order, where it waits for the records of its key',
      on(async (rig) => {
        const { transport, inbox } = await rig.start({ order: 'lane' })
        await rig.send({ value: 'a', key: 'k' })
        await transport.enact(await inbox.nth(1), deadLetter())
        const source = rig.source()
        const letter = await onlyLetter(source)
        await rig.send({ value: 'b', key: 'k' })
        const next = await inbox.nth(2)
        await source.publish({ deadLetter: letter, replayId: 'r-1' })
        await rig.send({ value: 'c', key: 'other' })
        // It waits for the record in flight, and others do not.
        await inbox.nth(3)
        expect(inbox.bodies).toEqual(['a', 'b', 'c'])
        await transport.enact(next, SETTLE)
        expect(await inbox.nth(4)).toMatchObject({ replayId: 'r-1', raw: { topic: rig.topic } })
        // The header is written again only if it fails again.
        const { deliveries } = inbox
        await transport.enact(deliveries[3] ?? next, deadLetter())
        expect((await onlyLetter(source)).envelope['replayTo']).toBeUndefined()
      }),
    )

    it(
      'is the source for a dead letter that was stored without a group',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send({ value: 'body', partition: 1 })
        await transport.enact(await inbox.nth(1), deadLetter())
        const source = rig.source()
        const { envelope, ...letter } = await onlyLetter(source)
        const { replayTo: _, ...kept } = envelope
        await source.publish({ deadLetter: { ...letter, envelope: kept }, replayId: 'r-1' })
        expect((await inbox.nth(2)).raw).toMatchObject({ topic: rig.topic, partition: 1 })
      }),
    )
  })

  describe.concurrent('identity of dead letters', () => {
    it(
      'is the position of the record, each time it is drained',
      on(async (rig) => {
        const topic = `${rig.topic}-dlt`
        await rig.makeTopic(topic)
        const offset = await rig.send({ value: 'body', partition: 1 }, topic)
        const source = rig.source({ deadLetterTopics: [topic] })
        const { deadLetters } = await source.drain({ limit: 1 })
        await source.close()
        const again = await rig.source({ deadLetterTopics: [topic] }).drain({ limit: 1 })
        for (const [letter] of [deadLetters, again.deadLetters]) {
          expect(letter).toMatchObject({ identity: 'stable', delivery: {} })
          expect(letter?.delivery.id).toBe(`${topic}/1/${offset}`)
        }
      }),
    )
  })

  describe.concurrent('an edited replay', () => {
    it(
      'is published with its edits, and keeps them through retries and dead letters',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send({
          value: '{"a":1}',
          key: 'k',
          headers: [
            ['mine', 'yes'],
            ['content-type', 'application/json'],
            ['redrive-key', 'order-1'],
          ],
        })
        const first = await inbox.nth(1)
        expect(first.replaces).toBeUndefined()
        await transport.enact(first, deadLetter())
        const source = rig.source()
        const letter = await onlyLetter(source)
        const edit = { bytes: Buffer.from('{"a":2}'), key: 'order-1/2', replaces: 'order-1' }
        const delivery = { ...letter.delivery, ...edit }
        await source.publish({ deadLetter: { ...letter, delivery }, replayId: 'r-1' })
        const check = async (nth: number) => {
          const { id, key, replaces, raw, contentType, lane, headers } = await inbox.nth(nth)
          expect({ id, key, replaces, contentType, lane, body: textOf(raw) }).toEqual({
            id: first.id,
            key: 'order-1/2',
            replaces: 'order-1',
            contentType: 'application/json',
            lane: 'k',
            body: '{"a":2}',
          })
          expect({ ...headers }).toEqual({ mine: 'yes', 'content-type': 'application/json' })
          return inbox.nth(nth)
        }
        await transport.enact(await check(2), retryIn(100))
        await transport.enact(await check(3), deadLetter())
        expect(await rig.read(deadLetterTopic(rig.topic, rig.group))).toHaveLength(2)
        const second = await onlyLetter(source)
        expect(second.delivery).toMatchObject({ key: 'order-1/2', replaces: 'order-1' })
        await source.publish({ deadLetter: second, replayId: 'r-2' })
        await check(4)
      }),
    )
  })
}
