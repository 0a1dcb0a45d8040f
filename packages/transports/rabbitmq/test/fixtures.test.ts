import { readFileSync } from 'node:fs'
import { urlOf } from '@redrive/dev-support'
import { expect, it } from 'vitest'
import { onRig } from './rig.ts'
import {
  bytesOfNext,
  headersOf,
  messageIn,
  propertiesOf,
  publishBytes,
  type WireMessage,
} from './wire-bytes.ts'

const url = await urlOf('rabbitmq', 'amqp')

/** test/fixtures/README.md describes how each file was made. */
function fixture(name: string): WireMessage {
  const path = new URL(`fixtures/${name}.json`, import.meta.url)
  const stored = JSON.parse(readFileSync(path, 'utf8')) as Record<keyof WireMessage, string>
  return {
    properties: Buffer.from(stored.properties, 'base64'),
    body: Buffer.from(stored.body, 'base64'),
  }
}

const CASES = [
  {
    name: 'spring-amqp',
    // Spring writes only the exchange and the key of the producer.
    origin: undefined,
    expected: {
      reason: 'spring_amqp_failed',
      envelope: { exchange: 'spring-events', routingKey: 'order.paid' },
      delivery: {
        id: 'spring-1',
        cycle: { attempts: 1, history: [{ message: 'Order 17 is closed' }] },
      },
    },
  },
  {
    name: 'nservicebus',
    origin: 'fixture-sales',
    expected: {
      origin: 'fixture-sales',
      reason: 'nservicebus_failed',
      delivery: {
        id: 'b26e5ffd-fa79-4eb1-b3b9-adda016cd7d9',
        cycle: {
          attempts: 4,
          firstFailedAt: Date.parse('2026-11-14T23:44:05.123Z'),
          history: [{ type: 'System.TimeoutException', message: 'The operation has timed out.' }],
        },
      },
    },
  },
]

it.each(CASES)(
  'a dead letter of $name is drained with its failure, and a replay has the same body, properties, headers and types',
  ({ name, origin, expected }) =>
    onRig(url, async (rig) => {
      const dead = `${rig.queue}-dead`
      const target = origin ?? rig.queue
      for (const queue of [dead, target]) await rig.makeQueue(queue)
      const original = fixture(name)
      await publishBytes(rig, dead, original)
      const source = rig.source({ deadLetterQueues: [dead] })
      const [letter] = (await source.drain({ limit: 1 })).deadLetters
      if (letter === undefined) throw new Error('nothing was drained')
      expect(letter).toMatchObject(expected)

      await source.publish({ deadLetter: letter, replayId: 'r-1' })
      const copy = messageIn(await bytesOfNext(rig, target))
      expect(copy.body).toEqual(original.body)
      expect(propertiesOf(copy)).toEqual(propertiesOf(original))
      const headers = headersOf(copy)
      expect(headersOf(original)).toEqual(withoutRedrive(headers))
      expect(headers).toHaveProperty('redrive-replay-id')
    })(),
)

const withoutRedrive = (headers: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => !name.startsWith('redrive-')))
