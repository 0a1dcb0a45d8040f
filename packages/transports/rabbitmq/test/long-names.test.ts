import { urlOf } from '@redrive/dev-support'
import { describe, expect, it } from 'vitest'
import type { RabbitMqOptions } from '../src/index.ts'
import { adoptedPrefix, topologyOf } from '../src/index.ts'
import { Inbox, onRig, type Rig } from './rig.ts'

const url = await urlOf('rabbitmq')

/** RabbitMQ cuts the text of a refusal at 255 bytes. With this name, nothing of the settings is left in it. */
const longNameOf = (rig: Rig): string => rig.owns(rig.queue.padEnd(190, '-long'))

const LANE = { order: 'lane', topology: 'adopt' } as const
const SINGLE = { 'x-single-active-consumer': true }

const open = (rig: Rig, options: Partial<RabbitMqOptions>) => rig.transport(options).open()

const refusal = (text: string) => ({
  code: 'TOPOLOGY_MISMATCH',
  message: expect.stringContaining(text) as string,
})

describe.concurrent('a queue with a long name', () => {
  it.each([
    ['a stream', {}],
    ['a stream with a limit', { 'x-max-length-bytes': 1_000_000 }],
  ])('is refused when it is %s', (_, settings) =>
    onRig(url, async (rig) => {
      const queue = longNameOf(rig)
      await rig.makeQueue(queue, { 'x-queue-type': 'stream', ...settings })
      const starting = open(rig, { queue, topology: 'adopt' })
      await expect(starting).rejects.toMatchObject(refusal('is a stream'))
      const { deadLetters } = topologyOf(queue, 'quorum', adoptedPrefix(queue))
      expect(await rig.count(deadLetters.name)).toBeUndefined()
    })(),
  )

  it.each([
    ['classic', {}],
    ['quorum', { 'x-queue-type': 'quorum' }],
  ])("is refused with order: 'lane' when it has several active consumers (%s)", (_, settings) =>
    onRig(url, async (rig) => {
      const queue = longNameOf(rig)
      await rig.makeQueue(queue, settings)
      const starting = open(rig, { ...LANE, queue })
      await expect(starting).rejects.toMatchObject(refusal('delivers to several consumers'))
    })(),
  )

  it.each([
    ['classic', SINGLE],
    ['quorum', { ...SINGLE, 'x-queue-type': 'quorum' }],
    ['quorum, with a limit', { ...SINGLE, 'x-queue-type': 'quorum', 'x-delivery-limit': 5 }],
  ])("works with order: 'lane' when it has a single active consumer (%s)", (_, settings) =>
    onRig(url, async (rig) => {
      const queue = longNameOf(rig)
      rig.owns(adoptedPrefix(queue))
      await rig.makeQueue(queue, settings)
      const transport = rig.transport({ ...LANE, queue })
      await transport.open()
      const inbox = new Inbox()
      await transport.receive(inbox)
      await rig.publish('', queue, 'a')
      await inbox.nth(1)
      expect(inbox.bodies).toEqual(['a'])
    })(),
  )

  it(
    "works with order: 'lane' and topology: 'verify'",
    onRig(url, async (rig) => {
      const queue = longNameOf(rig)
      const { exchange, ...queues } = topologyOf(queue, 'quorum', queue, 'lane')
      await rig.makeExchange(exchange, 'direct')
      for (const { name, arguments: args } of [queues.source, queues.deadLetters, ...queues.later])
        await rig.makeQueue(name, args)
      const starting = open(rig, { queue, order: 'lane', topology: 'verify' })
      await expect(starting).resolves.toBeUndefined()
    }),
  )

  it.each([
    ['with', SINGLE],
    ['without', {}],
  ])("is refused with order: 'lane' when the setting cannot be known (%s it)", (_, settings) =>
    onRig(url, async (rig) => {
      const queue = longNameOf(rig)
      await rig.makeQueue(queue, { ...settings, 'x-message-ttl': 3_600_000 })
      const starting = open(rig, { ...LANE, queue })
      await expect(starting).rejects.toMatchObject(refusal('Use a queue with a shorter name'))
    })(),
  )
})
