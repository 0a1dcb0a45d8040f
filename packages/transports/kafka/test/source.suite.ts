import { isRedriveError } from '@redrive/core'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { Kafka, logLevel, type Message, Partitioners } from 'kafkajs'
import { describe, expect, it } from 'vitest'
import { deadLetterTopic, type KafkaSource, retryTopic } from '../src/index.ts'
import { deadLetter, onRig, type Rig, type SentRecord, SETTLE, textOf, until } from './rig.ts'

const bodyOf = ({ delivery }: DrainedDeadLetter) => Buffer.from(delivery.bytes).toString()
const bodiesOf = (letters: readonly DrainedDeadLetter[]) => letters.map(bodyOf).toSorted()

/** Waits until the source has partitions; after joining the group it has none yet. */
const sharing = (source: KafkaSource) =>
  until('it has a share', async () => {
    const batch = await source.drain({ limit: 1 })
    try {
      await batch.abandon()
    } catch (error) {
      if (!isRedriveError(error, 'DELIVERY_LOST')) throw error
      // The other source took it in the meantime.
      return false
    }
    return batch.deadLetters.length === 1
  })

/** A number as Java writes it. */
function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

/** Sends records with kafkajs, which chooses the partitions. */
async function sendWithKafkajs(rig: Rig, messages: Message[]): Promise<void> {
  const client = new Kafka({ brokers: [...rig.brokers], logLevel: logLevel.NOTHING })
  const producer = client.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
  await producer.send({ topic: rig.topic, messages })
  await producer.disconnect()
}

export function drainingDeadLetters(brokers: readonly string[]): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(brokers, test, { partitions: 3 })

  /** Stores this number of dead letters, over all partitions. */
  async function letters(rig: Rig, count: number) {
    const started = await rig.start()
    for (let index = 0; index < count; index++) {
      await rig.send({ value: `${index}`, key: `k-${index}`, partition: index % rig.partitions })
    }
    await started.inbox.nth(count)
    const handOffs = started.inbox.deliveries.map(async (delivery) => {
      const { kind } = await started.transport.enact(delivery, deadLetter())
      expect(kind).toBe('done')
    })
    await Promise.all(handOffs)
    return started
  }

  async function drainedFrom(
    rig: Rig,
    topic: string,
    sent: SentRecord,
  ): Promise<DrainedDeadLetter> {
    await rig.makeTopic(topic)
    await rig.send(sent, topic)
    const source = rig.source({ deadLetterTopics: [topic] })
    const { deadLetters } = await source.drain({ limit: 10 })
    await source.close()
    expect(deadLetters).toHaveLength(1)
    return deadLetters[0] as DrainedDeadLetter
  }

  describe.concurrent('putting dead letters back', () => {
    it(
      'stores them in their topic and partition again, with the same key, value and headers',
      on(async (rig) => {
        await letters(rig, 3)
        const source = rig.source()
        const drainAll = async () => {
          const all: DrainedDeadLetter[] = []
          await until('all dead letters', async () => {
            const batch = await source.drain({ limit: 10 })
            all.push(...batch.deadLetters)
            await batch.release()
            return all.length === 3
          })
          return all.toSorted((a, b) => (bodyOf(a) < bodyOf(b) ? -1 : 1))
        }
        const before = await drainAll()
        expect(await source.queues()).toEqual([
          { name: deadLetterTopic(rig.topic, rig.group), depth: 0 },
        ])
        await source.putBack(before)
        expect(await source.depth()).toBe(3)
        const after = await drainAll()
        const contents = (all: readonly DrainedDeadLetter[]) =>
          all.map(({ envelope, delivery }) => ({
            envelope,
            body: delivery.bytes,
            key: delivery.key,
          }))
        expect(contents(after)).toEqual(contents(before))
      }),
    )

    it(
      'reports a topic that does not exist',
      on(async (rig) => {
        const source = rig.source({ deadLetterTopics: [`${rig.topic}.mistyped`] })
        expect(await source.queues()).toEqual([{ name: `${rig.topic}.mistyped`, depth: undefined }])
      }),
    )
  })

  describe.concurrent('a dead-letter topic that is missing', () => {
    it(
      'does not stop the others, is reported by name, and is read when it is created',
      on(async (rig) => {
        const [first, second] = [`${rig.topic}-a`, `${rig.topic}-b`]
        await rig.makeTopic(second)
        await rig.send({ value: 'other' }, second)
        const source = rig.source({ deadLetterTopics: [first, second] })
        const drained: string[] = []
        const drainedAll = async (count: number) => {
          const batch = await source.drain({ limit: 10 })
          drained.push(...bodiesOf(batch.deadLetters))
          await batch.release()
          return drained.length === count
        }
        await until('the other topic is drained', () => drainedAll(1), { timeout: '20s' })
        expect(await source.queues()).toEqual([
          { name: first, depth: undefined },
          { name: second, depth: 0 },
        ])
        await rig.makeTopic(first)
        await rig.send({ value: 'created' }, first)
        await until('the created topic is drained', () => drainedAll(2), { timeout: '20s' })
        await rig.deleteTopic(first)
        await rig.send({ value: 'after the deletion' }, second)
        await until('the other is drained again', () => drainedAll(3), { timeout: '40s' })
        await rig.makeTopic(first)
        await rig.send({ value: 'created again' }, first)
        await until('it is drained again', () => drainedAll(4), { timeout: '40s' })
        expect(drained).toEqual(['other', 'created', 'after the deletion', 'created again'])
        await expect(source.queues()).resolves.toMatchObject([{ depth: 0 }, { depth: 0 }])
      }),
    )
  })

  describe.concurrent('draining dead letters', () => {
    it(
      'drains each once, and counts unreleased ones',
      on(async (rig) => {
        await letters(rig, 7)
        const source = rig.source()
        expect(await source.depth()).toBe(7)
        const first = await source.drain({ limit: 4 })
        const second = await source.drain({ limit: 10 })
        expect([first.deadLetters.length, second.deadLetters.length]).toEqual([4, 3])
        expect(bodiesOf([...first.deadLetters, ...second.deadLetters])).toEqual('0123456'.split(''))
        // The second is released first: the first stays.
        await second.release()
        expect(await source.depth()).toBe(4)
        await first.release()
        expect(await source.depth()).toBe(0)
        expect((await source.drain({ limit: 10 })).deadLetters).toEqual([])
      }),
    )

    it(
      'drains unreleased dead letters again for the next control plane',
      on(async (rig) => {
        await letters(rig, 6)
        const source = rig.source()
        const released = await source.drain({ limit: 2 })
        const open = await source.drain({ limit: 10 })
        await released.release()
        await source.close()
        const next = rig.source()
        expect(await next.depth()).toBe(4)
        const again = await next.drain({ limit: 10 })
        expect(bodiesOf(again.deadLetters)).toEqual(bodiesOf(open.deadLetters))
        await again.release()
        expect(await next.depth()).toBe(0)
      }),
    )

    it(
      'drains abandoned dead letters again, and releases none of them',
      on(async (rig) => {
        await letters(rig, 3)
        const source = rig.source()
        const first = await source.drain({ limit: 10 })
        await first.abandon()
        // No effect: the batch has already ended.
        await first.release()
        expect(await source.depth()).toBe(3)
        const again = await source.drain({ limit: 10 })
        expect(bodiesOf(again.deadLetters)).toEqual(['0', '1', '2'])
        await again.release()
        expect(await source.depth()).toBe(0)
      }),
    )

    it(
      'rejects a release after another control plane took over',
      on(async (rig) => {
        await letters(rig, 6)
        const source = rig.source()
        const batch = await source.drain({ limit: 10 })
        expect(batch.deadLetters).toHaveLength(6)
        const other = rig.source()
        const taken: DrainedDeadLetter[] = []
        await until('the other has some', async () => {
          taken.push(...(await other.drain({ limit: 10 })).deadLetters)
          return taken.length > 0
        })
        const error = await batch.release().catch((reason: unknown) => reason)
        expect(isRedriveError(error, 'DELIVERY_LOST')).toBe(true)
        // Records of kept partitions are released, those of moved partitions are not.
        await until('the rest is committed', async () => (await other.depth()) === taken.length)
      }),
    )

    it(
      'gives each dead letter to one of two concurrent drains',
      on(async (rig) => {
        await letters(rig, 30)
        const sources = [rig.source(), rig.source()]
        // Each has its share first: a dead letter in flight during a rebalance is drained again.
        await Promise.all(sources.map(sharing))
        const found: string[] = []
        await until('all', async () => {
          const batches = await Promise.all(sources.map((source) => source.drain({ limit: 30 })))
          for (const batch of batches) {
            found.push(...bodiesOf(batch.deadLetters))
            await batch.release()
          }
          return (await sources[0]?.depth()) === 0
        })
        expect(found).toHaveLength(30)
        expect(new Set(found).size).toBe(30)
      }),
    )

    it(
      'returns immediately without dead letters',
      on(async (rig) => {
        await rig.start()
        const source = rig.source()
        expect(await source.depth()).toBe(0)
        const before = performance.now()
        expect((await source.drain({ limit: 5 })).deadLetters).toEqual([])
        expect(performance.now() - before).toBeLessThan(15_000)
      }),
    )
  })

  describe.concurrent('draining foreign dead letters', () => {
    it(
      'a dead letter of Spring Kafka',
      on(async (rig) => {
        const drained = await drainedFrom(rig, `${rig.topic}-dlt`, {
          key: 'k',
          partition: 0,
          headers: [
            ['kafka_dlt-original-topic', rig.topic],
            ['kafka_dlt-original-partition', int32(2)],
            ['kafka_dlt-original-offset', Buffer.alloc(8)],
            [
              'kafka_dlt-exception-fqcn',
              'org.springframework.kafka.listener.ListenerExecutionFailedException',
            ],
            ['kafka_dlt-exception-cause-fqcn', 'java.net.SocketTimeoutException'],
            ['kafka_dlt-exception-message', 'Read timed out'],
            ['kafka_dlt-exception-stacktrace', 'at com.shop.Billing.pay(Billing.java:12)'],
            ['retry_topic-attempts', int32(4)],
            ['mine', 'yes'],
          ],
        })
        expect(drained).toMatchObject({
          origin: rig.topic,
          reason: 'spring_kafka_failed',
          quarantined: false,
          envelope: { partition: '2' },
          delivery: {
            source: rig.topic,
            cycle: { attempts: 4, history: [{ number: 4, message: 'Read timed out' }] },
          },
        })
        const [failed] = drained.delivery.cycle.history
        expect(drained.class).toBe(failed?.class)
        expect(failed?.signature).toMatch(/^\d+-[0-9a-f]{16}$/)
        const { firstFailedAt = 0 } = drained.delivery.cycle
        expect(Math.abs(Date.now() - firstFailedAt)).toBeLessThan(60_000)
      }),
    )

    it(
      'a replay that Spring Kafka dead-lettered again, with the new reason',
      on(async (rig) => {
        const drained = await drainedFrom(rig, `${rig.topic}-dlt`, {
          key: 'k',
          headers: [
            ['redrive-version', '1'],
            ['redrive-id', 'm-1'],
            ['redrive-source', rig.topic],
            ['redrive-attempt', '0'],
            ['redrive-cycle', '2'],
            ['redrive-replay-id', 'r-1'],
            ['kafka_dlt-original-topic', rig.topic],
            ['kafka_dlt-original-partition', int32(2)],
            ['kafka_dlt-exception-fqcn', 'java.lang.IllegalStateException'],
            ['kafka_dlt-exception-message', 'Order is closed'],
          ],
        })
        expect(drained).toMatchObject({
          origin: rig.topic,
          reason: 'spring_kafka_failed',
          envelope: { partition: '2' },
          delivery: {
            id: 'm-1',
            replayId: 'r-1',
            cycle: { number: 2, history: [{ message: 'Order is closed' }] },
          },
        })
        expect(drained.envelope).not.toHaveProperty('replayTo')
      }),
    )

    it(
      'a dead letter of Kafka Connect',
      on(async (rig) => {
        const drained = await drainedFrom(rig, `${rig.topic}-connect`, {
          key: 'k',
          headers: [
            ['__connect.errors.topic', rig.topic],
            ['__connect.errors.partition', '1'],
            ['__connect.errors.offset', '17'],
            ['__connect.errors.connector.name', 'sink'],
            ['__connect.errors.stage', 'VALUE_CONVERTER'],
            [
              '__connect.errors.exception.class.name',
              'org.apache.kafka.connect.errors.DataException',
            ],
            [
              '__connect.errors.exception.message',
              'Converting byte[] to Kafka Connect data failed',
            ],
            ['__connect.errors.exception.stacktrace', 'at org.apache.kafka.connect'],
          ],
        })
        expect(drained).toMatchObject({
          origin: rig.topic,
          reason: 'kafka_connect_value_converter',
          envelope: { partition: '1' },
          delivery: {
            cycle: {
              attempts: 1,
              history: [{ message: 'Converting byte[] to Kafka Connect data failed' }],
            },
          },
        })
        expect(drained.class).toBe(drained.delivery.cycle.history[0]?.class)
      }),
    )

    it(
      'a record with invalid or no failure headers, with the source as origin',
      on(async (rig) => {
        const nonsense = await drainedFrom(rig, `${rig.topic}-odd`, {
          partition: 1,
          headers: [
            ['__connect.errors.topic', rig.topic],
            ['__connect.errors.partition', '-1; drop'],
          ],
        })
        expect(nonsense.origin).toBe(rig.topic)
        expect(nonsense.envelope).not.toHaveProperty('partition')
        const silent = await drainedFrom(rig, `${rig.topic}-silent`, { partition: 2 })
        expect(silent).toMatchObject({
          origin: rig.topic,
          reason: 'unknown',
          class: 'unknown',
        })
        expect(silent.envelope).not.toHaveProperty('partition')
      }),
    )
  })

  describe.concurrent('replaying', () => {
    it(
      'publishes to the group that failed, with the original partition and key',
      on(async (rig) => {
        const { transport, inbox } = await letters(rig, 3)
        const source = rig.source()
        const batch = await source.drain({ limit: 10 })
        for (const letter of batch.deadLetters) {
          await source.publish({ deadLetter: letter, replayId: `r-${bodyOf(letter)}` })
        }
        await batch.release()
        await inbox.nth(6)
        for (const replayed of inbox.deliveries.slice(3)) {
          const index = Number(textOf(replayed.raw))
          expect(replayed).toMatchObject({
            source: rig.topic,
            lane: `k-${index}`,
            replayId: `r-${index}`,
            cycle: { number: 2, attempts: 0, history: [] },
            raw: {
              topic: retryTopic(rig.topic, rig.group, 250),
              partition: index % rig.partitions,
            },
          })
          expect(replayed.id).toBe(
            inbox.deliveries.find(({ raw }) => textOf(raw) === `${index}`)?.id,
          )
          await transport.enact(replayed, SETTLE)
        }
        expect(await rig.read(deadLetterTopic(rig.topic, rig.group))).toHaveLength(3)
      }),
    )

    it(
      'publishes a foreign dead letter to the partition in its headers',
      on(async (rig) => {
        const { inbox } = await rig.start()
        const letter = await drainedFrom(rig, `${rig.topic}-dlt`, {
          key: 'k',
          headers: [
            ['kafka_dlt-original-topic', rig.topic],
            ['kafka_dlt-original-partition', int32(2)],
          ],
        })
        await rig.source().publish({ deadLetter: letter, replayId: 'r-1' })
        expect((await inbox.nth(1)).raw).toMatchObject({ topic: rig.topic, partition: 2 })
      }),
    )

    it(
      'publishes a foreign dead letter without a partition to the partition of its key',
      on(async (rig) => {
        const { inbox } = await rig.start()
        const keys = ['customer-1', 'customer-2', 'customer-3', 'customer-4', 'customer-5']
        await sendWithKafkajs(
          rig,
          keys.map((key) => ({ key, value: 'original' })),
        )
        await inbox.nth(keys.length)
        const partitionOf = new Map(inbox.deliveries.map(({ lane, raw }) => [lane, raw.partition]))
        expect(new Set(partitionOf.values()).size).toBeGreaterThan(1)
        for (const [index, key] of keys.entries()) {
          const letter = await drainedFrom(rig, `${rig.topic}-dlt-${index}`, { key, partition: 0 })
          await rig.source().publish({ deadLetter: letter, replayId: `r-${index}` })
        }
        await inbox.nth(2 * keys.length)
        for (const { lane, raw, replayId } of inbox.deliveries.slice(keys.length)) {
          expect(replayId).toBeDefined()
          expect([lane, raw.partition]).toEqual([lane, partitionOf.get(lane)])
        }
      }),
    )

    it(
      'keeps every byte of a body in a shared buffer',
      on(async (rig) => {
        const { inbox } = await letters(rig, 1)
        const source = rig.source()
        const { deadLetters } = await source.drain({ limit: 1 })
        const [letter] = deadLetters
        if (letter === undefined) throw new Error('nothing was drained')
        const shared = Uint8Array.from([9, 9, 1, 2, 255, 9])
        const delivery = { ...letter.delivery, bytes: shared.subarray(2, 5) }
        await source.publish({ deadLetter: { ...letter, delivery }, replayId: 'r-1' })
        expect([...(await inbox.nth(2)).bytes]).toEqual([1, 2, 255])
      }),
    )
  })
}
