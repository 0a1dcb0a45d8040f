import { EventEmitter } from 'node:events'
import type { Channel } from 'amqplib'
import { describe, expect, it } from 'vitest'
import type { RabbitMqDelivery } from '../src/headers.ts'
import { Holding } from '../src/holding.ts'
import { Unsettled } from '../src/unsettled.ts'

/** A channel that says what is done on it, and two messages in hand on it. */
function held() {
  const done: string[] = []
  const emitter = new EventEmitter()
  const channel = Object.assign(emitter, {
    isGone: false,
    ack: () => {
      if (channel.isGone) throw new Error('Channel closed')
      done.push('ack')
    },
    nack: () => void done.push('nack'),
    prefetch: async () => {
      if (channel.isGone) throw new Error('Channel ended, no reply will be forthcoming')
      done.push('asked')
    },
    close: async () => void done.push('close'),
    end: () => {
      channel.isGone = true
      emitter.emit('close')
    },
  })
  const unsettled = new Unsettled(channel)
  const taken = [1, 2].map((deliveryTag) => {
    const delivery = { raw: { fields: { deliveryTag } } } as unknown as RabbitMqDelivery
    unsettled.add(delivery)
    return { queue: 'orders.dead', delivery }
  })
  return {
    done,
    channel,
    holding: new Holding(channel as unknown as Channel, unsettled, taken),
    taken,
  }
}

const onLost = (cause?: unknown) => new Error('lost', { cause })

describe('what is in hand of a queue', () => {
  it('is released when the broker has heard of it', async () => {
    const { done, holding } = held()
    await holding.releaseAll(onLost)
    expect(done).toEqual(['ack', 'asked', 'close'])
    expect(holding.inHand).toBe(0)
  })

  it('is not released when the connection ends before the broker has heard of it', async () => {
    const { channel, holding } = held()
    const cause = new Error('Channel ended, no reply will be forthcoming')
    channel.prefetch = () => {
      channel.end()
      return Promise.reject(cause)
    }
    await expect(holding.releaseAll(onLost)).rejects.toMatchObject({ message: 'lost', cause })
  })

  it('is given back at once', async () => {
    const { done, holding } = held()
    await holding.abandonAll(onLost)
    expect(done).toEqual(['nack', 'nack', 'close'])
  })

  it('and is released by itself is forgotten when the channel ends in the same moment', async () => {
    const { done, channel, holding, taken } = held()
    holding.release(taken[0]?.delivery as RabbitMqDelivery)
    channel.end()
    // Acknowledgements leave in the next turn of the loop; on a closed channel they would throw there.
    await new Promise(setImmediate)
    expect(done).toEqual([])
    expect(holding.inHand).toBe(0)
    await expect(holding.releaseAll(onLost)).rejects.toThrow('lost')
  })
})
