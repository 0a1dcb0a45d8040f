import { readFileSync } from 'node:fs'
import { urlsOf } from '@redrive/dev-support'
import { expect, it } from 'vitest'
import { onRig, type SentRecord } from './rig.ts'

const brokers = await urlsOf('kafka')

type Bytes = string | null
interface Stored {
  readonly key: string
  readonly value: string
  readonly headers: readonly (readonly [name: string, value: Bytes])[]
}

/** test/fixtures/README.md describes how each file was made. */
function fixture(name: string): Required<Omit<SentRecord, 'partition'>> {
  const path = new URL(`fixtures/${name}.json`, import.meta.url)
  const { key, value, headers } = JSON.parse(readFileSync(path, 'utf8')) as Stored
  const bytesOf = (text: string) => Buffer.from(text, 'base64')
  return {
    key: bytesOf(key),
    value: bytesOf(value),
    headers: headers.map(([header, one]) => [header, one === null ? null : bytesOf(one)]),
  }
}

const CASES = [
  {
    name: 'spring-kafka',
    origin: 'spring-orders',
    partition: 0,
    expected: {
      reason: 'spring_kafka_failed',
      delivery: { cycle: { history: [{ type: 'java.lang.IllegalStateException' }] } },
    },
  },
  {
    name: 'kafka-connect',
    origin: 'connect-orders',
    partition: 2,
    expected: {
      reason: 'kafka_connect_value_converter',
      delivery: {
        cycle: { history: [{ type: 'org.apache.kafka.connect.errors.DataException' }] },
      },
    },
  },
]

it.each(CASES)(
  'a dead letter of $name is drained with its failure, and a replay has the same key, value and headers in the same partition',
  ({ name, origin, partition, expected }) =>
    onRig(
      brokers,
      async (rig) => {
        const dead = `${rig.topic}-dead`
        // The name is in the bytes of the fixture; an interrupted run leaves the topic.
        if ((await rig.admin.listTopics()).includes(origin)) await rig.deleteTopic(origin)
        for (const topic of [dead, origin]) await rig.makeTopic(topic)
        const original = fixture(name)
        await rig.send(original, dead)
        const source = rig.source({ deadLetterTopics: [dead] })
        const [letter] = (await source.drain({ limit: 1 })).deadLetters
        if (letter === undefined) throw new Error('nothing was drained')
        expect(letter).toMatchObject({
          origin,
          envelope: { partition: `${partition}` },
          ...expected,
        })

        await source.publish({ deadLetter: letter, replayId: 'r-1' })
        const [copy] = await rig.read(origin)
        expect(copy).toMatchObject({ partition, key: original.key, value: original.value })
        const headers = (copy?.headers ?? []).map(
          ([header, one]) => [header.toString(), one] as const,
        )
        expect(headers.filter(([header]) => !header.startsWith('redrive-'))).toEqual(
          original.headers,
        )
        expect(headers.map(([header]) => header)).toContain('redrive-replay-id')
      },
      { partitions: 3 },
    )(),
)
