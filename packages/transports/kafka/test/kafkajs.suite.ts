import type { Message } from '@redrive/runtime'
import { exerciseTransport } from '@redrive/testing'
import { type Consumer, Kafka, logLevel, Partitioners } from 'kafkajs'
import { describe, expect, it } from 'vitest'
import { type Redriven, type WithRedriveOptions, withRedrive } from '../src/kafkajs/kafkajs.ts'
import { decodeCommit } from '../src/consume/crash-evidence.ts'
import { deadLetterTopic, retryTopic } from '../src/index.ts'
import { CAPABILITIES } from '../src/capabilities.ts'
import { kafkaJsWorld, kafkajsClients } from './kafkajs.world.ts'
import { onRig, type Rig, until } from './rig.ts'

/** Retries on the broker, in the first tier; nothing else interferes. */
const POLICY = {
  retry: {
    attempts: 2,
    maxInlineDelay: 0,
    backoff: { kind: 'fixed', delay: '200ms', jitter: 'none' },
  },
  outage: 'off',
  breaker: 'off',
  poison: 'off',
  flood: 'off',
  adaptiveConcurrency: 'off',
  decode: (bytes: Uint8Array) => Buffer.from(bytes).toString(),
} as const

const TIER_MS = 250

interface Team {
  readonly redriven: Redriven
  readonly consumer: Consumer
  /** Stops like `kill -9`: nothing is committed, and the group is not left. */
  abandon(): Promise<void>
}

type Handle = (message: Message) => Promise<void> | void

export function consumingWithKafkaJs(brokers: readonly string[]): void {
  exerciseTransport({
    runner: { describe, it },
    isConcurrent: true,
    name: 'clients of kafkajs',
    capabilities: { ...CAPABILITIES, deliveryCount: 'none' },
    open: () => kafkaJsWorld(brokers),
    skip: [
      {
        scenario: 'a broker restart loses nothing',
        reason: 'how a client comes back is its own affair',
      },
      {
        scenario: 'stress: the whole list, ten times in parallel',
        reason: 'a broker of this size is busy for a minute with it once',
      },
    ],
    deadline: '60s',
  })

  const on = (test: (rig: Rig) => Promise<void>, partitions = 1) =>
    onRig(brokers, test, { partitions })

  /** An application with a client that it created. */
  async function start(
    rig: Rig,
    handle: Handle,
    options: Partial<WithRedriveOptions> = {},
  ): Promise<Team> {
    const { topic, group } = rig
    const timing = { heartbeatInterval: 500, maxWaitTimeInMs: 100 }
    const { consumer, producer, admin } = kafkajsClients(brokers, group, timing)
    await Promise.all([consumer.connect(), producer.connect(), admin.connect()])
    const redriven = await withRedrive(handle, {
      topic,
      group,
      consumer,
      producer,
      admin,
      ...POLICY,
      ...options,
    })
    await consumer.subscribe({ topics: redriven.topics, fromBeginning: true })
    await consumer.run(redriven.run)
    let isOver = false
    const end = async (isStopping: boolean) => {
      if (isOver) return
      isOver = true
      if (isStopping) await redriven.stop({ drain: '2s' })
      await consumer.disconnect()
      await Promise.all([producer.disconnect(), admin.disconnect()])
      if (!isStopping) await redriven.stop({ drain: '1ms' })
    }
    rig.atEnd(() => end(true))
    return { redriven, consumer, abandon: () => end(false) }
  }

  const valueOf = ({ body }: Message) => String(body)

  describe.concurrent('on a consumer of kafkajs', () => {
    it(
      'commits all handled records',
      on(async (rig) => {
        const handled: string[] = []
        const { redriven } = await start(rig, (message) => void handled.push(valueOf(message)))
        for (let index = 0; index < 20; index++)
          await rig.send({ value: `${index}`, partition: index % 2 })
        await until('all', () => handled.length === 20)
        expect(handled.map(Number).toSorted((a, b) => a - b)).toEqual([...Array(20).keys()])
        await until('the end', async () =>
          (await rig.committed()).every(({ offset }) => offset === 10),
        )
        await redriven.stop()
        expect(await rig.read(deadLetterTopic(rig.topic, rig.group))).toEqual([])
      }, 2),
    )

    it(
      'retries a failure after the delay of its tier, never early, and then dead-letters it with its history',
      on(async (rig) => {
        const attempts: { readonly at: number; readonly number: number }[] = []
        await start(rig, (_) => {
          attempts.push({ at: Date.now(), number: attempts.length + 1 })
          throw new Error(`broken for the ${attempts.length}. time`)
        })
        await rig.send({ key: 'k', value: '{"a":1}', headers: [['mine', Buffer.from([0, 255])]] })
        const dead = deadLetterTopic(rig.topic, rig.group)
        await until('a dead letter', async () => (await rig.read(dead)).length === 1)
        expect(attempts).toHaveLength(2)
        const [retried] = await rig.read(retryTopic(rig.topic, rig.group, TIER_MS))
        // By the clock of the broker, which sets the timestamp of the copy.
        expect((attempts[1]?.at ?? 0) - (retried?.timestamp ?? Number.NaN)).toBeGreaterThanOrEqual(
          TIER_MS,
        )
        const source = rig.source()
        const { deadLetters } = await source.drain({ limit: 10 })
        expect(deadLetters).toHaveLength(1)
        expect(deadLetters[0]).toMatchObject({
          origin: rig.topic,
          reason: 'attempts_exhausted',
          envelope: { partition: '0', recordKey: Buffer.from('k').toString('base64') },
          delivery: {
            id: `${rig.topic}/0/0`,
            lane: 'k',
            headers: { mine: Buffer.from([0, 255]) },
            cycle: {
              attempts: 2,
              history: [
                { message: 'broken for the 1. time' },
                { message: 'broken for the 2. time' },
              ],
            },
          },
        })
        await until(
          'the original is committed',
          async () => (await rig.committed())[0]?.offset === 1,
        )
        for (const letter of deadLetters)
          await source.publish({ deadLetter: letter, replayId: 'r-1' })
        await until('the replay', () => attempts.length > 2)
      }),
    )

    it(
      'does not block a partition when a record always fails',
      on(async (rig) => {
        const handled: string[] = []
        await start(
          rig,
          (message) => {
            if (valueOf(message) === 'poison') throw new Error('poison')
            handled.push(valueOf(message))
          },
          { retry: { ...POLICY.retry, attempts: 1_000, backoff: { kind: 'fixed', delay: '30s' } } },
        )
        await rig.send({ value: 'poison' })
        for (let index = 0; index < 10; index++) await rig.send({ value: `${index}` })
        await until('those behind it', () => handled.length === 10)
        await until('all committed', async () => (await rig.committed())[0]?.offset === 11)
        const waiting = await rig.read(retryTopic(rig.topic, rig.group, 30_000))
        expect(waiting).toHaveLength(1)
      }),
    )

    it(
      'dead-letters a record as large as the topic allows, by its position, and continues',
      on(async (rig) => {
        const handled: string[] = []
        await start(rig, (message) => {
          if (valueOf(message).length > 100) throw new Error('too long')
          handled.push(valueOf(message))
        })
        // The default limit, less the bytes that a record needs around its value.
        const value = 'x'.repeat(1_048_588 - 110)
        await rig.send({ value })
        await rig.send({ value: 'next' })
        const dead = deadLetterTopic(rig.topic, rig.group)
        await until('a dead letter', async () => (await rig.read(dead)).length === 1)
        await until('the next record', () => handled.length === 1)
        const { deadLetters } = await rig.source().drain({ limit: 10 })
        expect(deadLetters.map(({ reason }) => reason)).toEqual(['too_large'])
        expect(Buffer.from(deadLetters[0]?.delivery.bytes ?? []).equals(Buffer.from(value))).toBe(
          true,
        )
        await until('all committed', async () => (await rig.committed())[0]?.offset === 2)
      }),
    )

    it(
      'never commits past the first unfinished record when handlers finish in any order',
      on(async (rig) => {
        const gates = new Map<string, () => void>()
        await start(rig, (message) => {
          const { promise, resolve } = Promise.withResolvers<void>()
          gates.set(valueOf(message), resolve)
          return promise
        })
        for (let index = 0; index < 6; index++) await rig.send({ value: `${index}` })
        await until('all are in flight', () => gates.size === 6)
        const finish = (...values: readonly number[]) => {
          for (const value of values) gates.get(`${value}`)?.()
        }
        const told = async (offset: number, above: readonly number[]) => {
          const [committed] = await rig.committed()
          const { progress } = decodeCommit(committed?.offset ?? 0, committed?.metadata ?? null)
          const has = [0, 1, 2, 3, 4, 5].filter((one) => one >= offset && progress.has(one))
          return (committed?.offset ?? 0) === offset && has.join() === above.join()
        }
        finish(1, 2, 4)
        await until('three above the mark', () => told(0, [1, 2, 4]))
        finish(0)
        await until('the mark moves to the gap', () => told(3, [4]))
        finish(3, 5)
        await until('the end', () => told(6, []))
        expect(gates.size).toBe(6)
      }),
    )

    it(
      'handles only unfinished records again after a crash',
      on(async (rig) => {
        const first: string[] = []
        const team = await start(rig, (message) => {
          first.push(valueOf(message))
          // One handler never ends.
          return valueOf(message) === '2' ? new Promise<void>(() => undefined) : undefined
        })
        for (let index = 0; index < 5; index++) await rig.send({ value: `${index}` })
        await until('all began', () => first.length === 5)
        await until('committed', async () => {
          const [committed] = await rig.committed()
          const { progress } = decodeCommit(committed?.offset ?? 0, committed?.metadata ?? null)
          return progress.mark === 2 && progress.has(4)
        })
        await team.abandon()
        const second: string[] = []
        await start(rig, (message) => void second.push(valueOf(message)))
        await rig.send({ value: 'last' })
        await until('the last', () => second.includes('last'))
        expect(second).toEqual(['2', 'last'])
        await until('the end', async () => (await rig.committed())[0]?.offset === 6)
      }),
    )

    it(
      'loses nothing without an admin client: records finished out of order are delivered again',
      on(async (rig) => {
        const first: string[] = []
        const team = await start(rig, (message) => {
          first.push(valueOf(message))
          return valueOf(message) === '1' ? new Promise<void>(() => undefined) : undefined
        })
        for (let index = 0; index < 3; index++) await rig.send({ value: `${index}` })
        await until('committed', async () => (await rig.committed())[0]?.offset === 1)
        await team.abandon()
        const second: string[] = []
        const { topic, group } = rig
        const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING })
        const consumer = kafka.consumer({ groupId: group, maxWaitTimeInMs: 100 })
        const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
        await Promise.all([consumer.connect(), producer.connect()])
        const handler: Handle = (message) => void second.push(valueOf(message))
        const redriven = await withRedrive(handler, { topic, group, consumer, producer })
        rig.atEnd(async () => {
          await redriven.stop()
          await Promise.all([consumer.disconnect(), producer.disconnect()])
        })
        await consumer.subscribe({ topics: redriven.topics })
        await consumer.run(redriven.run)
        await until('both', () => second.length === 2)
        expect(second).toEqual(['1', '2'])
      }),
    )

    it(
      'handles every record when a second consumer takes over a share, in flight or not',
      on(async (rig) => {
        const handled: string[] = []
        const count = 120
        const handle: Handle = async (message) => {
          await new Promise((resolve) => setImmediate(resolve))
          handled.push(valueOf(message))
        }
        await start(rig, handle)
        const sending = (async () => {
          for (let index = 0; index < count; index++) {
            await rig.send({ value: `${index}`, partition: index % 4 })
          }
        })()
        const second = await start(rig, handle)
        await sending
        await until('all', () => new Set(handled).size === count)
        await until('all committed', async () =>
          (await rig.committed()).every(({ offset }) => offset === count / 4),
        )
        await second.redriven.stop()
        await second.consumer.disconnect()
        await rig.send({ value: 'last', partition: 3 })
        await until('the last', () => handled.includes('last'))
        expect(new Set(handled).size).toBe(count + 1)
      }, 4),
    )

    it(
      'does not interrupt a kept partition when another consumer joins',
      on(async (rig) => {
        const gate = Promise.withResolvers<void>()
        const runs: Record<'first' | 'second', string[]> = { first: [], second: [] }
        const handle = (who: 'first' | 'second') => (message: Message) => {
          runs[who].push(valueOf(message))
          return gate.promise
        }
        const first = await start(rig, handle('first'))
        for (const { partition } of rig.topicPartitions())
          await rig.send({ value: `${partition}`, partition })
        await until('all are in flight', () => runs.first.length === 4)
        await start(rig, handle('second'))
        await until('the second has a share', () => runs.second.length > 0)
        gate.resolve()
        await until('all committed', async () =>
          (await rig.committed()).every(({ offset }) => offset === 1),
        )
        // The first received each record once; only moved records were delivered again, to the second.
        expect(runs.first.toSorted()).toEqual(['0', '1', '2', '3'])
        expect(runs.second.length).toBeLessThan(4)
        expect(new Set(runs.second).size).toBe(runs.second.length)
        expect(first.redriven.consumer.stats().running).toBe(0)
      }, 4),
    )

    it(
      'handles records of one key one after the other in lane order',
      on(async (rig) => {
        const seen: string[] = []
        let failures = 0
        await start(
          rig,
          async (message) => {
            seen.push(valueOf(message))
            await new Promise((resolve) => setImmediate(resolve))
            if (valueOf(message) === 'a 0' && failures++ < 1) throw new Error('again')
          },
          { order: 'lane', retry: { ...POLICY.retry, maxInlineDelay: '5m' } },
        )
        for (let index = 0; index < 4; index++) {
          for (const key of ['a', 'b']) await rig.send({ key, value: `${key} ${index}` })
        }
        await until('all', () => seen.length === 9)
        const ofKey = (key: string) => seen.filter((one) => one.startsWith(key))
        expect(ofKey('a')).toEqual(['a 0', 'a 0', 'a 1', 'a 2', 'a 3'])
        expect(ofKey('b')).toEqual(['b 0', 'b 1', 'b 2', 'b 3'])
      }),
    )

    it(
      'reads more records than fit into the read-ahead',
      on(async (rig) => {
        const gate = Promise.withResolvers<void>()
        const handled = new Set<string>()
        await start(rig, async (message) => {
          await gate.promise
          handled.add(valueOf(message))
        })
        const count = 3_000
        const kafka = new Kafka({ brokers: [...brokers], logLevel: logLevel.NOTHING })
        const producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
        await producer.connect()
        rig.atEnd(() => producer.disconnect())
        for (let from = 0; from < count; from += 500) {
          const messages = Array.from({ length: 500 }, (_, index) => ({ value: `${from + index}` }))
          await producer.send({ topic: rig.topic, messages })
        }
        gate.resolve()
        await until('all', () => handled.size === count, { timeout: 25_000 })
        await until('the end', async () => (await rig.committed())[0]?.offset === count)
        expect(handled.size).toBe(count)
      }),
    )
  })
}
