import { describe, expect, it } from 'vitest'
import { retryTopic } from '../src/index.ts'
import { deadLetter, onRig, retryIn, type Rig, SETTLE, type Started, until } from './rig.ts'

/** Sends records 0, 1, 2 … with this prefix to partition 0. */
async function sendMany(rig: Rig, text: string, count: number): Promise<void> {
  for (let number = 0; number < count; number++) await rig.send({ value: `${text} ${number}` })
}

const bodies = (text: string, count: number) =>
  Array.from({ length: count }, (_, number) => `${text} ${number}`)

/** Waits for deliveries and settles them. */
async function settled({ transport, inbox }: Started, count: number): Promise<readonly string[]> {
  await inbox.nth(count, { timeout: '40s' })
  for (const delivery of inbox.deliveries) await transport.enact(delivery, SETTLE)
  return inbox.bodies
}

/** Adds partitions and waits until the broker reports them. */
async function addPartitions(rig: Rig, count: number): Promise<void> {
  const { topic: name, admin } = rig
  await admin.createPartitions({ topics: [{ name, count }] })
  await until('the partitions exist', async () => {
    const { topics } = await admin.metadata({ topics: [name], forceUpdate: true })
    return topics.get(name)?.partitionsCount === count
  })
}

const typesIn = (events: ReturnType<Rig['events']>) => events.map(({ type }) => type)

export function changingTopics(brokers: readonly string[]): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(brokers, test)

  describe.concurrent('a group with two topics', () => {
    it(
      'reads both, in two consumers of one process',
      on(async (rig) => {
        const other = `${rig.topic}-invoices`
        await rig.makeTopic(other, {}, 2)
        const first = await rig.start()
        await rig.send({ value: 'order' })
        await first.inbox.nth(1)
        const second = await rig.start({ topic: other })
        for (const partition of [0, 1]) await rig.send({ partition, value: 'invoice' }, other)
        await second.inbox.nth(2, { timeout: '30s' })
        await rig.send({ value: 'order' })
        await first.inbox.nth(2)
        expect(first.inbox.bodies).toEqual(['order', 'order'])
        expect(second.inbox.bodies).toEqual(['invoice', 'invoice'])
      }),
    )
  })

  describe.concurrent('a consumer whose topics have the names of another pair', () => {
    it(
      'is refused, with both pairs',
      on(async (rig) => {
        const dotted = `${rig.topic}.eu`
        await rig.makeTopic(dotted)
        const first = await rig.start({ topic: dotted, group: rig.group })
        await until('it has committed', async () => {
          return (await rig.committed(dotted))[0]?.offset !== undefined
        })
        const second = rig.transport({ group: `eu.${rig.group}` })
        await expect(second.open()).rejects.toMatchObject({
          code: 'TOPOLOGY_MISMATCH',
          message: expect.stringContaining(
            `The topic "${rig.topic}" with the group "eu.${rig.group}" and the topic "${dotted}" with the group "${rig.group}"`,
          ) as string,
        })
        await first.transport.close()
      }),
    )
  })

  describe.concurrent('partitions that are added', () => {
    it(
      'can hand off their records: the other topics grow with the source',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send({ value: 'first' })
        // The producer of the transport knows the topics now, with one partition each.
        await transport.enact(await inbox.nth(1), retryIn(10))
        await transport.enact(await inbox.nth(2), deadLetter())
        await addPartitions(rig, 2)
        await rig.send({ partition: 1, value: 'added' })
        const added = await inbox.nth(3, { timeout: '40s' })
        expect(added.raw.partition).toBe(1)
        expect(await transport.enact(added, retryIn(10))).toMatchObject({ kind: 'done' })
        const again = await inbox.nth(4, { timeout: '40s' })
        expect([again.raw.partition, again.cycle.attempts]).toEqual([1, 1])
        expect(await transport.enact(again, deadLetter())).toMatchObject({ kind: 'done' })
      }),
    )

    it.each(['earliest', 'latest'] as const)(
      'are read from their first record on, within 30 s, from: %s',
      (from) =>
        on(async (rig) => {
          const started = await rig.start({ from })
          await until('it has joined', async () => (await rig.committed())[0]?.offset !== undefined)
          await addPartitions(rig, 3)
          for (const partition of [1, 2]) await rig.send({ partition, value: `added ${partition}` })
          const began = performance.now()
          await started.inbox.nth(2, { timeout: '40s' })
          expect(new Set(started.inbox.bodies)).toEqual(new Set(['added 1', 'added 2']))
          expect(performance.now() - began).toBeLessThan(30_000)
        })(),
    )
  })

  describe.concurrent('a retry topic that is deleted', () => {
    it(
      'stops neither the source nor the other retries, is reported, and is read when it is created again',
      on(async (rig) => {
        const events = rig.events()
        const { transport, inbox } = await rig.start()
        await rig.send({ value: 'first' })
        await transport.enact(await inbox.nth(1), retryIn(10))
        await transport.enact(await inbox.nth(2), SETTLE)
        const name = retryTopic(rig.topic, rig.group, 1_000)
        const problems = () =>
          events.flatMap((event) => (event.type === 'topic_missing' ? [event] : []))
        await rig.deleteTopic(name)
        await until('it is reported', () => problems().length > 0, { timeout: '20s' })
        const text = new RegExp(`"${name}" does not exist.*Restart one consumer.*retention.ms=`)
        expect(problems()).toMatchObject([
          { where: name, problem: expect.stringMatching(text) as string },
        ])
        // A member that joins starts a rebalance. It does not create the topic, because it is not opened.
        await rig.transport().receive(inbox)
        await rig.send({ value: 'second' })
        await transport.enact(await inbox.nth(3), retryIn(10))
        const again = await inbox.nth(4)
        await rig.makeTopic(name, { 'message.timestamp.type': 'LogAppendTime' })
        await until('it is reported', () => problems().length > 1, { timeout: '20s' })
        expect(problems()[1]).toMatchObject({ where: name, problem: undefined })
        await until('it accepts retries', async () => {
          return (await transport.enact(again, retryIn(1_000))).kind === 'done'
        })
        const last = await inbox.nth(5, { timeout: '30s' })
        expect([last.raw.topic, inbox.bodies]).toEqual([
          name,
          ['first', 'first', 'second', 'second', 'second'],
        ])
        expect(typesIn(events)).not.toContain('connection_lost')
      }),
    )
  })

  describe.concurrent('a finished record of a deleted retry topic', () => {
    it(
      'does not stop the commits of the other topics',
      on(async (rig) => {
        const events = rig.events()
        const { transport, inbox } = await rig.start()
        await rig.send({ value: 'first' })
        await transport.enact(await inbox.nth(1), retryIn(10))
        const retried = await inbox.nth(2)
        await rig.deleteTopic(retried.raw.topic)
        await transport.enact(retried, SETTLE)
        await rig.send({ value: 'second' })
        await transport.enact(await inbox.nth(3), SETTLE)
        await transport.committed()
        expect((await rig.committed())[0]?.offset).toBe(2)
        await until('it is reported', () => typesIn(events).includes('topic_missing'))
        expect(typesIn(events)).not.toContain('connection_lost')
      }),
    )
  })

  describe.concurrent('a topic that is deleted and created again', () => {
    it.each(['earliest', 'latest'] as const)(
      'is read from its beginning while a consumer runs, from: %s',
      (from) =>
        on(async (rig) => {
          const events = rig.events()
          const started = await rig.start({ from })
          await until('it has joined', async () => (await rig.committed())[0]?.offset !== undefined)
          await sendMany(rig, 'old', 20)
          await settled(started, 20)
          await rig.deleteTopic()
          await rig.makeTopic(rig.topic)
          await sendMany(rig, 'new', 5)
          const all = await settled(started, 25)
          expect(all).toEqual([...bodies('old', 20), ...bodies('new', 5)])
          expect(typesIn(events)).toContain('topic_recreated')
          expect(typesIn(events)).not.toContain('messages_expired')
        })(),
    )

    it.each([
      ['shorter', 8],
      ['longer', 30],
    ])('is read from its beginning after a stop, when the new log is %s', (_, count) =>
      on(async (rig) => {
        const first = await rig.start()
        await sendMany(rig, 'old', 20)
        await settled(first, 20)
        await first.transport.close()
        const [before] = await rig.committed()
        expect(before?.offset).toBe(20)
        await rig.deleteTopic()
        await rig.makeTopic(rig.topic)
        // Some brokers keep the offset of a deleted topic.
        await rig.commit(20, before?.metadata ?? '')
        await sendMany(rig, 'new', count)
        const events = rig.events()
        expect(await rig.source().lag()).toBe(count)
        const second = await rig.start()
        expect(await settled(second, count)).toEqual(bodies('new', count))
        expect(typesIn(events)).toContain('topic_recreated')
      })(),
    )
  })
}
