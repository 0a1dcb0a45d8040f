import { createHash } from 'node:crypto'
import type { DrainedDeadLetter } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import { deadLetterTopic, retryTopic } from '../src/index.ts'
import {
  deadLetter,
  failedCycle,
  onRig,
  retryIn,
  type Rig,
  SETTLE,
  type Started,
  until,
} from './rig.ts'

/** Limit of a record in the topics of Redrive, less than the large records need. */
const LIMIT = 4_096
/** Too large even with gzip, and the same in each run. */
const LARGE = createHash('shake256', { outputLength: 1.5 * LIMIT })
  .update('large')
  .digest('base64')

/** Waits until a topic has this setting. */
async function configure(rig: Rig, topic: string, name: string, value: string): Promise<void> {
  const resource = { resourceType: 2, resourceName: topic } as const
  const configs = [{ name, value, configOperation: 0 } as const]
  await rig.admin.incrementalAlterConfigs({ resources: [{ ...resource, configs }] })
  await until(`${name} of ${topic}`, async () => {
    const [described] = await rig.admin.describeConfigs({ resources: [resource] })
    return described?.configs.find((one) => one.name === name)?.value === value
  })
}

export function handlingLargeRecords(brokers: readonly string[]): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(brokers, test)

  /** Returns a consumer whose retry and dead-letter topics accept only small records. */
  async function startTight(rig: Rig, options: Parameters<Rig['start']>[0] = {}): Promise<Started> {
    const started = await rig.start(options)
    const topics = [deadLetterTopic(rig.topic, rig.group), retryTopic(rig.topic, rig.group, 250)]
    for (const topic of topics) await configure(rig, topic, 'max.message.bytes', String(LIMIT))
    return started
  }

  /** Returns the only dead letter. */
  async function drained(rig: Rig): Promise<DrainedDeadLetter> {
    const { deadLetters } = await rig.source().drain({ limit: 10 })
    expect(deadLetters).toHaveLength(1)
    return deadLetters[0] as DrainedDeadLetter
  }

  const bodyOf = ({ delivery }: DrainedDeadLetter) => Buffer.from(delivery.bytes).toString()

  describe.concurrent('a record as large as its topic allows', () => {
    it(
      'becomes a dead letter with its whole history: the topics of Redrive accept larger records',
      on(async (rig) => {
        const limit = 100_000
        await configure(rig, rig.topic, 'max.message.bytes', String(limit))
        const { transport, inbox } = await rig.start()
        const value = 'y'.repeat(limit - 100)
        await rig.send({ value })
        const decision = deadLetter(failedCycle(10))
        const stack = 'at handler (file.ts:1)\n'.repeat(100)
        const enactment = await transport.enact(await inbox.nth(1), {
          ...decision,
          failure: { ...decision.failure, stack },
        })
        const target = deadLetterTopic(rig.topic, rig.group)
        expect(enactment).toEqual({
          kind: 'done',
          destination: 'dead_letter',
          target,
          truncated: 0,
        })
        const letter = await drained(rig)
        expect(bodyOf(letter)).toBe(value)
        expect(letter.stack).toBe(stack)
        expect(letter.delivery.cycle.history).toHaveLength(10)
      }),
    )
  })

  describe.concurrent('a record that its retry and dead-letter topics do not accept', () => {
    it(
      'keeps only its last failure first',
      on(async (rig) => {
        const { transport, inbox } = await startTight(rig)
        const value = 'z'.repeat(LIMIT - 800)
        await rig.send({ value })
        const enactment = await transport.enact(await inbox.nth(1), deadLetter(failedCycle(10)))
        expect(enactment).toMatchObject({ kind: 'done', destination: 'dead_letter', truncated: 9 })
        const letter = await drained(rig)
        expect(bodyOf(letter)).toBe(value)
        expect(letter.delivery.cycle.history.map(({ number }) => number)).toEqual([10])
      }),
    )

    it(
      'becomes a dead letter that refers to the original, and is complete when it is drained',
      on(async (rig) => {
        const { transport, inbox } = await startTight(rig)
        await rig.send({ key: 'customer', value: LARGE, headers: [['tenant', 'north']] })
        const enactment = await transport.enact(await inbox.nth(1), deadLetter())
        expect(enactment).toMatchObject({ kind: 'done', destination: 'dead_letter' })
        const [stored] = await rig.read(deadLetterTopic(rig.topic, rig.group))
        expect(stored?.value).toBe(null)
        await transport.committed()
        expect((await rig.committed())[0]?.offset).toBe(1)

        const letter = await drained(rig)
        const { id, lane, headers } = letter.delivery
        expect(bodyOf(letter)).toBe(LARGE)
        expect([id, lane, headers['tenant']]).toEqual([`${rig.topic}/0/0`, 'customer', 'north'])
        expect([letter.origin, letter.reason]).toEqual([rig.topic, deadLetter().reason])
        expect(headers).not.toHaveProperty('redrive-original')

        await expect(
          rig.source().publish({ deadLetter: letter, replayId: 'r-1' }),
        ).rejects.toMatchObject({
          code: 'REFUSED',
          message: expect.stringContaining('MESSAGE_TOO_LARGE') as string,
        })
        await configure(
          rig,
          retryTopic(rig.topic, rig.group, 250),
          'max.message.bytes',
          String(4 * LIMIT),
        )
        await rig.source().publish({ deadLetter: letter, replayId: 'r-1' })
        const replayed = await inbox.nth(2)
        expect([replayed.raw.value?.toString(), replayed.replayId]).toEqual([LARGE, 'r-1'])
        await transport.enact(replayed, SETTLE)
      }),
    )

    it(
      'is not retried: the broker never stores the retry, and gives the reason',
      on(async (rig) => {
        const { transport, inbox } = await startTight(rig)
        await rig.send({ value: LARGE })
        const enactment = await transport.enact(await inbox.nth(1), retryIn(100))
        expect(enactment).toMatchObject({
          kind: 'refused',
          isTooLarge: true,
          error: {
            code: 'REFUSED',
            message: expect.stringContaining('MESSAGE_TOO_LARGE') as string,
          },
        })
        expect(await rig.read(retryTopic(rig.topic, rig.group, 250))).toEqual([])
      }),
    )

    it(
      'does not affect the others, also with transactions',
      on(async (rig) => {
        const { transport, inbox } = await startTight(rig, { handOff: 'transactional' })
        for (const value of ['a', LARGE, 'b', LARGE, 'c']) await rig.send({ value })
        await inbox.nth(5)
        const enactments = await Promise.all(
          inbox.deliveries.map(async (delivery) => transport.enact(delivery, deadLetter())),
        )
        expect(enactments.map(({ kind }) => kind)).toEqual(Array.from({ length: 5 }, () => 'done'))
        const { deadLetters } = await rig.source().drain({ limit: 10 })
        expect(deadLetters.map(bodyOf).toSorted()).toEqual(['a', LARGE, 'b', LARGE, 'c'].toSorted())
      }),
    )

    it(
      'is not read from a topic that the consumer does not read',
      on(async (rig) => {
        const secrets = `${rig.topic}-secrets`
        await rig.makeTopic(secrets)
        await rig.send({ value: 'secret' }, secrets)
        const { transport } = await rig.start()
        const original = JSON.stringify([secrets, 0, 0, (await rig.read(secrets))[0]?.timestamp])
        const headers = [
          ['redrive-reason', 'terminal'],
          ['redrive-original', original],
        ] as const
        await rig.send({ value: null, headers }, deadLetterTopic(rig.topic, rig.group))
        const letter = await drained(rig)
        expect([bodyOf(letter), letter.reason]).toEqual(['', 'terminal'])
        await transport.close()
      }),
    )

    it(
      'has no content when the original no longer exists, and cannot be replayed then',
      on(async (rig) => {
        const { transport, inbox } = await startTight(rig)
        await rig.send({ value: LARGE })
        await transport.enact(await inbox.nth(1), deadLetter())
        await transport.close()
        await rig.deleteTopic()
        await rig.makeTopic(rig.topic)
        await rig.send({ value: 'another record at the same offset' })
        const letter = await drained(rig)
        expect([letter.reason, bodyOf(letter)]).toEqual(['content_missing', ''])
        await expect(
          rig.source().publish({ deadLetter: letter, replayId: 'r-1' }),
        ).rejects.toMatchObject({
          code: 'REFUSED',
          message: expect.stringContaining(`${rig.topic}/0/0`) as string,
        })
        const edited = { ...letter, delivery: { ...letter.delivery, bytes: Buffer.from('new') } }
        await rig.source().publish({ deadLetter: edited, replayId: 'r-2' })
        const [replay] = await rig.read(retryTopic(rig.topic, rig.group, 250))
        expect(replay?.value?.toString()).toBe('new')
      }),
    )
  })

  describe.concurrent('a dead letter that its topic accepts only compressed', () => {
    it(
      'is replayed and put back with gzip',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        const value = 'z'.repeat(2 * LIMIT)
        for (let index = 0; index < 2; index++) await rig.send({ value })
        await inbox.nth(2)
        await Promise.all(inbox.deliveries.map(async (one) => transport.enact(one, deadLetter())))
        const dead = deadLetterTopic(rig.topic, rig.group)
        const topics = [dead, retryTopic(rig.topic, rig.group, 250)]
        for (const topic of topics) await configure(rig, topic, 'max.message.bytes', String(LIMIT))
        const source = rig.source()
        const { deadLetters } = await source.drain({ limit: 10 })
        const [first, second] = deadLetters as [DrainedDeadLetter, DrainedDeadLetter]
        // Both are one request first.
        await Promise.all([
          source.publish({ deadLetter: first, replayId: 'r-1' }),
          source.publish({ deadLetter: second, replayId: 'r-2' }),
        ])
        await inbox.nth(4)
        expect(inbox.bodies).toEqual([value, value, value, value])
        await source.putBack([first])
        const stored = await rig.read(dead)
        expect(stored.map((record) => record.value?.toString())).toEqual([value, value, value])
      }),
    )
  })

  describe.concurrent('a hand-off to a topic that does not exist', () => {
    it(
      'is refused with the words of the client, and succeeds when the topic is back',
      on(async (rig) => {
        const dead = deadLetterTopic(rig.topic, rig.group)
        const { transport, inbox } = await rig.start()
        await rig.send({})
        const delivery = await inbox.nth(1)
        await rig.deleteTopic(dead)
        const enactment = await transport.enact(delivery, deadLetter())
        expect(enactment).toMatchObject({
          kind: 'refused',
          isTooLarge: false,
          error: {
            code: 'REFUSED',
            message: expect.stringMatching(`${dead}: UNKNOWN_TOPIC_OR_PARTITION`) as string,
          },
        })
        await rig.makeTopic(dead)
        await until('it is stored', async () => {
          return (await transport.enact(delivery, deadLetter())).kind === 'done'
        })
        expect(await rig.read(dead)).toHaveLength(1)
      }),
    )
  })
}
