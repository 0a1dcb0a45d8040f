import { SETTLE } from '@redrive/core'
import { urlOf } from '@redrive/dev-support'
import type { Channel, ConfirmChannel } from 'amqplib'
import { describe, expect, it } from 'vitest'
import { deadLetterQueue } from '../src/index.ts'
import {
  closedByBroker,
  deadLetter,
  handedOff,
  type Line,
  lineOf,
  onRig,
  type Rig,
  retryIn,
  until,
  within,
} from './rig.ts'

const url = await urlOf('rabbitmq', 'amqp')
const on = (test: (rig: Rig) => Promise<void>) => onRig(url, test)

// Nodes of a partitioned cluster may never answer a request, while their heartbeats continue.
describe.concurrent('a broker that hangs', () => {
  const never = () => new Promise<never>(() => undefined)
  /** Longer than the timeout of a request. */
  const PATIENCE_MS = 25_000
  const linesFor = (lines: readonly Line[], wanted: Line['purpose']) =>
    lines.filter(({ purpose }) => purpose === wanted)

  for (const request of ['checkQueue', 'prefetch', 'consume'] as const) {
    it(
      `on ${request} after a reconnect: the next connection is tried`,
      on(async (rig) => {
        const onChannel = (channel: Channel, line: Line, lines: readonly Line[]) => {
          if (line === linesFor(lines, 'consume')[1]) channel[request] = never
        }
        const { transport, inbox, lines } = await rig.start({ hooks: { onChannel } })
        closedByBroker(lineOf(lines, 'consume'))
        await rig.send('a')
        const delivery = await inbox.nth(1, { timeout: PATIENCE_MS })
        expect(linesFor(lines, 'consume')).toHaveLength(3)
        expect(await transport.enact(delivery, SETTLE)).toMatchObject({ destination: 'settled' })
      }),
    )
  }

  it(
    'on a request that only publishing needs: a reconnected consumer still consumes',
    on(async (rig) => {
      const onChannel = (channel: Channel, line: Line, lines: readonly Line[]) => {
        if (line === linesFor(lines, 'consume')[0]) return
        channel.assertExchange = never
        channel.bindQueue = never
      }
      const { inbox, lines } = await rig.start({ hooks: { onChannel } })
      closedByBroker(lineOf(lines, 'consume'))
      await rig.send('a')
      await inbox.nth(1)
      expect(linesFor(lines, 'consume')).toHaveLength(2)
    }),
  )

  it(
    'on the check of acknowledgements: deliveries in flight are delivered again over another connection',
    on(async (rig) => {
      let isHanging = false
      const onChannel = (channel: Channel) => {
        const prefetch = channel.prefetch.bind(channel)
        channel.prefetch = (...request) => (isHanging ? never() : prefetch(...request))
      }
      const { transport, inbox } = await rig.start({ hooks: { onChannel } })
      for (const body of ['a', 'b']) await rig.send(body)
      const delivery = await inbox.nth(1)
      isHanging = true
      const enactment = transport.enact(delivery, deadLetter())
      expect(
        await within('an answer', Promise.resolve(enactment), { timeout: PATIENCE_MS }),
      ).toEqual({
        kind: 'lost',
      })
      isHanging = false
      await inbox.nth(3)
      expect(inbox.bodies).toContain('b')
    }),
  )

  it(
    'on a copy that it lost: the copy is sent again over another connection',
    on(async (rig) => {
      let first: Line | undefined
      const onConfirmChannel = (channel: ConfirmChannel, line: Line) => {
        first ??= line
        // Written by Redrive, never confirmed.
        if (line === first) Object.assign(channel, { sendMessage: () => true })
      }
      const { transport, inbox, lines } = await rig.start({
        confirmTimeout: '1s',
        hooks: { onConfirmChannel },
      })
      await rig.send('a')
      const delivery = await inbox.nth(1)
      await handedOff(() => transport.enact(delivery, deadLetter()))
      expect(linesFor(lines, 'publish')).toHaveLength(2)
      expect(inbox.lostOnes).toEqual([])
      expect(await rig.count(deadLetterQueue(rig.queue))).toBe(1)
    }),
  )

  it(
    'on a copy and on the close: later connections are not reset',
    on(async (rig) => {
      let first: Line | undefined
      const onConfirmChannel = (channel: ConfirmChannel, line: Line) => {
        first ??= line
        if (line !== first) return
        Object.assign(channel, { sendMessage: () => true })
        line.model.close = never
      }
      const { transport, inbox, lines } = await rig.start({
        confirmTimeout: '1s',
        hooks: { onConfirmChannel },
      })
      await rig.send('a')
      const delivery = await inbox.nth(1)
      await handedOff(() => transport.enact(delivery, deadLetter()))
      // Longer than the close timeout, and several checks for a hung connection.
      const seenUntil = performance.now() + 4_500
      await until('it was looked often enough', () => performance.now() > seenUntil)
      expect(linesFor(lines, 'publish')).toHaveLength(2)
      expect(await rig.count(deadLetterQueue(rig.queue))).toBe(1)
    }),
  )

  it(
    'while it is short of memory is not replaced when it continues: late confirms count',
    on(async (rig) => {
      const held: (() => void)[] = []
      const onConfirmChannel = (channel: ConfirmChannel) => {
        const publish = channel.publish.bind(channel)
        channel.publish = (exchange, key, content, options, done) =>
          publish(exchange, key, content, options, (error, ok) => {
            held.push(() => done?.(error, ok))
          })
      }
      const { transport, inbox, lines } = await rig.start({
        confirmTimeout: '1s',
        hooks: { onConfirmChannel },
      })
      await rig.send('a')
      const delivery = await inbox.nth(1)
      const first = transport.enact(delivery, deadLetter())
      await until('the broker has it', () => held.length === 1)
      const { model } = lineOf(lines, 'publish')
      model.emit('blocked', 'memory')
      const blockedUntil = performance.now() + 3_500
      expect(await first).toMatchObject({ kind: 'unknown' })
      await until('it was looked often enough', () => performance.now() > blockedUntil)
      model.emit('unblocked')
      const goesOnUntil = performance.now() + 1_200
      await until('it was looked again', () => performance.now() > goesOnUntil)
      const second = transport.enact(delivery, deadLetter())
      held[0]?.()
      expect(await second).toMatchObject({ kind: 'done', destination: 'dead_letter' })
      expect(linesFor(lines, 'publish')).toHaveLength(1)
      expect(await rig.count(deadLetterQueue(rig.queue))).toBe(1)
    }),
  )

  it(
    'on the declaration of a queue: it is declared over another connection',
    on(async (rig) => {
      const onChannel = (channel: Channel, line: Line, lines: readonly Line[]) => {
        if (line === linesFor(lines, 'publish')[0]) channel.assertQueue = never
      }
      const { transport, inbox, lines } = await rig.start({ hooks: { onChannel } })
      await rig.send('a')
      const delivery = await inbox.nth(1)
      const first = await transport.enact(delivery, retryIn(100))
      expect(first).toMatchObject({ kind: 'unknown', error: { code: 'UNREACHABLE' } })
      await handedOff(() => transport.enact(delivery, retryIn(100)))
      expect(linesFor(lines, 'publish')).toHaveLength(2)
      await inbox.nth(2)
    }),
  )
})
