import { randomBytes } from 'node:crypto'
import { urlOf } from '@redrive/dev-support'
import { describe, expect, it } from 'vitest'
import { deadLetterQueue } from '../src/index.ts'
import { deadLetter, failedCycle, onRig, retryIn } from './rig.ts'

const url = await urlOf('rabbitmq')

/** 8 KiB: the smallest frames of RabbitMQ 4.1 and later. */
const FRAME_MAX = 8_192
const address = `${url}?frameMax=${FRAME_MAX}`

/** Text of this length that cannot be compressed. */
const randomText = (length: number) => randomBytes(length).toString('base64').slice(0, length)

describe.concurrent('a copy whose headers do not fit into a frame', () => {
  it(
    'omits the history when it fits without it',
    onRig(url, async (rig) => {
      const { transport, inbox, lines } = await rig.start({ url: address })
      const headers = { mine: randomText(6_000) }
      await rig.send('a', { messageId: 'm-1', headers })
      const cycle = failedCycle(30, 'y'.repeat(200))
      const enactment = await transport.enact(await inbox.nth(1), deadLetter(cycle))
      expect(enactment).toMatchObject({ kind: 'done', truncated: 30 })
      const { properties } = await rig.take(deadLetterQueue(rig.queue))
      expect(properties.headers).toMatchObject({ ...headers, 'redrive-id': 'm-1' })
      expect(lines).toHaveLength(2)
    }),
  )

  it(
    "stores the producer's headers compressed when it does not fit without the history",
    onRig(url, async (rig) => {
      const { transport, inbox } = await rig.start({ url: address })
      const headers = { mine: 'x'.repeat(8_050) }
      await rig.send('a', { messageId: 'm-1', headers })
      expect(await transport.enact(await inbox.nth(1), retryIn(0))).toMatchObject({ kind: 'done' })
      const again = await inbox.nth(2)
      expect(again).toMatchObject({ id: 'm-1', headers, cycle: { attempts: 1 } })
      expect(await transport.enact(again, deadLetter())).toMatchObject({ kind: 'done' })
    }),
  )

  it(
    'is refused when nothing can be omitted, and the copies of other messages are stored',
    onRig(url, async (rig) => {
      const { transport, inbox, lines } = await rig.start({ url: address })
      await rig.send('large', { messageId: 'm-1', headers: { mine: randomText(8_050) } })
      await rig.send('small', { messageId: 'm-2' })
      const [large, small] = [await inbox.nth(1), await inbox.nth(2)]
      const [refused, done] = await Promise.all([
        transport.enact(large, deadLetter()),
        transport.enact(small, deadLetter()),
      ])
      expect(refused).toMatchObject({
        kind: 'refused',
        error: {
          code: 'REFUSED',
          message: expect.stringMatching(
            /"m-1" cannot be published.*at most 8192.*frame_max/,
          ) as string,
        },
      })
      expect(done).toMatchObject({ kind: 'done' })
      expect(lines).toHaveLength(2)
      expect(await rig.count(deadLetterQueue(rig.queue))).toBe(1)
    }),
  )

  it(
    'is reported for a replay when the dead letter is drained',
    onRig(url, async (rig) => {
      rig.owns(rig.queue)
      await rig.makeTopology()
      const headers = { mine: randomText(8_050) }
      await rig.publish('', deadLetterQueue(rig.queue), 'a', { messageId: 'm-1', headers })
      const { deadLetters } = await rig.source({ url: address }).drain({ limit: 1 })
      expect(deadLetters.map(({ problem }) => problem?.code)).toEqual(['headers_not_publishable'])
    }),
  )
})
