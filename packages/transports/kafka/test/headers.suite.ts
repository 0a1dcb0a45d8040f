import { HEADER_PREFIX } from '@redrive/core'
import { consume, type Message } from '@redrive/runtime'
import { describe, expect, it } from 'vitest'
import type { Header, KafkaRecord } from '../src/delivery.ts'
import { deadLetterTopic, retryTopic } from '../src/index.ts'
import {
  deadLetter,
  failedCycle,
  Inbox,
  onRig,
  type Rig,
  retryIn,
  type SentRecord,
  SETTLE,
  textOf,
  until,
} from './rig.ts'

const BINARY = Buffer.from([0, 255, 195, 40, 128])

/** Headers that copies must not change: repeated names, null values, bytes that are not text. */
const HEADERS: NonNullable<SentRecord['headers']> = [
  ['mine', 'yes'],
  ['same', 'one'],
  ['bytes', BINARY],
  ['same', 'two'],
  ['none', null],
  ['empty', ''],
  ['same', 'one'],
  ['Ünïcode', 'é'],
]

const isOfProducer = ([name]: Header) => !name.toString().startsWith(HEADER_PREFIX)

/** Returns the parts of a record that the producer wrote. */
const ownOf = ({ partition, key, value, headers }: KafkaRecord) => ({
  partition,
  key: key?.toString('hex') ?? null,
  value: value?.toString('hex') ?? null,
  headers: headers
    .filter(isOfProducer)
    .map(([name, content]) => [name.toString(), content?.toString('hex') ?? null]),
})

const MESSAGES: Readonly<Record<string, SentRecord>> = {
  'a binary body and key': { key: BINARY, value: BINARY, headers: HEADERS, partition: 1 },
  'a tombstone': { key: Buffer.from([254, 1]), value: null, headers: HEADERS, partition: 1 },
  'an empty body and an empty key': { key: '', value: '', headers: HEADERS },
  'no key and no headers': { value: 'body', partition: 1 },
}

export function headersOnTheWire(brokers: readonly string[]): void {
  const on = (test: (rig: Rig) => Promise<void>) => onRig(brokers, test, { partitions: 2 })

  describe.concurrent('produced records', () => {
    for (const handOff of ['atLeastOnce', 'transactional'] as const) {
      for (const [name, sent] of Object.entries(MESSAGES)) {
        it(
          `${name}: keep every byte through retry, dead letter and replay (${handOff})`,
          on(async (rig) => {
            const { transport, inbox } = await rig.start({ handOff })
            const offset = await rig.send(sent)
            const first = await inbox.nth(1)
            const id = `${rig.topic}/${sent.partition ?? 0}/${offset}`
            expect(first.id).toBe(id)
            expect(await transport.enact(first, retryIn(100))).toMatchObject({
              destination: 'retry',
            })
            const second = await inbox.nth(2)
            expect(second).toMatchObject({ id, source: rig.topic, cycle: { attempts: 1 } })
            expect(second.isTombstone ?? false).toBe(sent.value === null)
            expect(await transport.enact(second, deadLetter())).toMatchObject({
              destination: 'dead_letter',
            })
            const source = rig.source()
            const batch = await source.drain({ limit: 10 })
            expect(batch.deadLetters).toHaveLength(1)
            for (const letter of batch.deadLetters) {
              expect(letter.delivery.isTombstone ?? false).toBe(sent.value === null)
              // Converts it as a catalog stores it: text and bytes.
              const envelope = JSON.parse(JSON.stringify(letter.envelope)) as Record<string, string>
              const bytes = Uint8Array.from(letter.delivery.bytes)
              const delivery = { ...letter.delivery, bytes }
              await source.publish({
                deadLetter: { ...letter, envelope, delivery },
                replayId: 'r-1',
              })
            }
            await batch.release()
            const third = await inbox.nth(3)
            expect(third).toMatchObject({ id, replayId: 'r-1', cycle: { number: 2, attempts: 0 } })
            await transport.enact(third, SETTLE)

            const [original] = await rig.read(rig.topic)
            const [retried, replayed] = await rig.read(retryTopic(rig.topic, rig.group, 250))
            const [dead] = await rig.read(deadLetterTopic(rig.topic, rig.group))
            const expected = ownOf(original as KafkaRecord)
            expect(expected.headers).toHaveLength(sent.headers?.length ?? 0)
            for (const copy of [retried, dead, replayed]) {
              expect(ownOf(copy as KafkaRecord)).toEqual(expected)
              // Each Redrive header exists once: values of an earlier copy are replaced.
              const ours = copy?.headers.filter((header) => !isOfProducer(header)) ?? []
              expect(new Set(ours.map(([known]) => known.toString())).size).toBe(ours.length)
            }
          }),
        )
      }
    }

    it(
      'pass null to the handler for a tombstone, and the body for other records',
      on(async (rig) => {
        const messages: Message[] = []
        const consumer = await consume(rig.transport(), (message) => {
          messages.push(message)
        })
        rig.atEnd(() => consumer.stop())
        await rig.send({ key: 'k', value: null })
        await rig.send({ key: 'k', value: '{"a":1}' })
        await until('both', () => messages.length === 2)
        expect(messages.map(({ body }) => body)).toEqual([null, { a: 1 }])
      }),
    )

    it(
      'have lists for repeated header names, and bytes for values that are not text',
      on(async (rig) => {
        const { inbox } = await rig.start()
        await rig.send({ headers: HEADERS })
        const { headers } = await inbox.nth(1)
        expect({ ...headers }).toEqual({
          mine: 'yes',
          same: ['one', 'two', 'one'],
          bytes: BINARY,
          none: null,
          empty: '',
          Ünïcode: 'é',
        })
      }),
    )

    it(
      'have the key of their CloudEvent, and so do their retries',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        const headers = [
          ['ce_id', 'e-1'],
          ['ce_source', '/shop'],
          ['ce_type', 'order.paid'],
          ['ce_datacontenttype', 'application/json'],
        ] as const
        await rig.send({ value: '{}', headers })
        const first = await inbox.nth(1)
        const expected = { key: '/shop#e-1', type: 'order.paid', contentType: 'application/json' }
        expect(first).toMatchObject(expected)
        expect(first.id).toBe(`${rig.topic}/0/0`)
        await transport.enact(first, retryIn(100))
        expect(await inbox.nth(2)).toMatchObject({ ...expected, id: first.id })
      }),
    )

    it(
      'cut a long history to the header budget, and report the number of removed attempts',
      on(async (rig) => {
        const { transport, inbox } = await rig.start()
        await rig.send({ headers: [['mine', 'yes']] })
        const long = failedCycle(200, 'x'.repeat(190))
        const enactment = await transport.enact(await inbox.nth(1), deadLetter(long))
        expect(enactment).toMatchObject({ kind: 'done', destination: 'dead_letter' })
        const { truncated } = enactment as { readonly truncated: number }
        expect(truncated).toBeGreaterThan(100)
        const [dead] = await rig.read(deadLetterTopic(rig.topic, rig.group))
        const ours = dead?.headers.filter((header) => !isOfProducer(header)) ?? []
        const size = ours.reduce(
          (sum, [name, value]) => sum + name.length + (value?.length ?? 0),
          0,
        )
        expect(size).toBeLessThanOrEqual(transport.capabilities.headerBudgetBytes)
        const { deadLetters } = await rig.source().drain({ limit: 1 })
        const { cycle } = deadLetters[0]?.delivery ?? {}
        expect(cycle?.attempts).toBe(200)
        expect(cycle?.history).toHaveLength(200 - truncated)
        expect(cycle?.history.at(-1)?.number).toBe(200)
      }),
    )

    it(
      'report unreadable Redrive headers and ignore them',
      on(async (rig) => {
        const { inbox } = await rig.start()
        await rig.send({
          headers: [
            ['redrive-attempt', 'many'],
            ['redrive-id', BINARY],
          ],
        })
        const delivery = await inbox.nth(1)
        expect(delivery).toMatchObject({ id: `${rig.topic}/0/0`, cycle: { attempts: 0 } })
        expect(delivery.headerProblems.length).toBeGreaterThan(0)
      }),
    )
  })

  describe.concurrent('transactions of producers', () => {
    it(
      'deliver all records of a committed transaction, and none of an aborted one',
      on(async (rig) => {
        const producer = rig.transactional()
        const other = rig.transactional()
        await rig.sendTransaction(producer, [{ value: 'aborted 1' }, { value: 'aborted 2' }], false)
        await rig.sendTransaction(producer, [{ value: 'committed 1' }], true)
        await rig.send({ value: 'plain' })
        await rig.sendTransaction(other, [{ value: 'committed 2' }], true)
        await rig.sendTransaction(other, [{ value: 'aborted 3' }], false)
        await rig.sendTransaction(other, [{ value: 'committed 3' }], true)
        // All in one response: the end of the aborted transaction must be found in it.
        const { transport, inbox } = await rig.start()
        await until('the last', () => inbox.bodies.includes('committed 3'))
        expect(inbox.bodies).toEqual(['committed 1', 'plain', 'committed 2', 'committed 3'])
        for (const delivery of inbox.deliveries) await transport.enact(delivery, SETTLE)
        await transport.committed()
        // Markers and aborted records count as finished, or the group would never be at the end.
        expect((await rig.read(rig.topic)).map(textOf)).toEqual(inbox.bodies)
        await until('the end is committed', async () => {
          await transport.committed()
          return (await rig.committed())[0]?.offset === 12
        })
      }),
    )

    it(
      'delay records of an open transaction, and all records after them',
      on(async (rig) => {
        const { inbox } = await rig.start()
        const undecided = await rig.begin(rig.transactional(), [{ value: 'undecided' }])
        await rig.send({ value: 'behind it' })
        await rig.send({ value: 'elsewhere', partition: 1 })
        await inbox.nth(1)
        expect(inbox.bodies).toEqual(['elsewhere'])
        await undecided.commit()
        await inbox.nth(3)
        expect(inbox.bodies).toEqual(['elsewhere', 'undecided', 'behind it'])
      }),
    )
  })

  describe.concurrent('records that the broker deleted', () => {
    it(
      'are not skipped when the log ends before an offset that another client committed',
      on(async (rig) => {
        const events = rig.events()
        await rig.send({ value: 'first' })
        await rig.commit(50)
        const { inbox } = await rig.start()
        await inbox.nth(1)
        expect(inbox.bodies).toEqual(['first'])
        expect(events.map(({ type }) => type)).toContain('topic_recreated')
      }),
    )

    it(
      'by a broker that was behind are not waited for: reading continues at the end of the log',
      on(async (rig) => {
        const events = rig.events()
        await rig.send({ value: 'seen' })
        const before = await rig.start()
        await before.transport.enact(await before.inbox.nth(1), SETTLE)
        await before.transport.close()
        // The id of the topic in the commit shows that this offset belongs to the same topic.
        const [committed] = await rig.committed()
        expect(committed?.offset).toBe(1)
        await rig.commit(50, committed?.metadata ?? '')
        const { inbox } = await rig.start()
        await until('the position is committed', async () => {
          return (await rig.committed())[0]?.offset === 1
        })
        await rig.send({ value: 'new' })
        await inbox.nth(1)
        expect(inbox.bodies).toEqual(['new'])
        const types = events.map(({ type }) => type)
        expect(types).not.toContain('topic_recreated')
        expect(types).not.toContain('messages_expired')
      }),
    )

    it(
      'are reported when they were not consumed, and consuming continues after them',
      on(async (rig) => {
        for (let count = 0; count < 5; count++) await rig.send({ value: `${count}` })
        const events = rig.events()
        const transport = rig.transport()
        await transport.open()
        const inbox = new Inbox()
        transport.limit(1)
        await transport.receive(inbox)
        await inbox.nth(1)
        await transport.close()
        await rig.admin.deleteRecords({
          topics: [{ name: rig.topic, partitions: [{ partition: 0, offset: 3n }] }],
        })
        // The committed offset is that of the first record, which was deleted.
        await rig.commit(0)
        const later = await rig.start()
        await later.inbox.nth(2)
        expect(later.inbox.bodies).toEqual(['3', '4'])
        expect(events).toContainEqual(
          expect.objectContaining({ type: 'messages_expired', where: `${rig.topic}/0`, count: 3 }),
        )
      }),
    )
  })
}
