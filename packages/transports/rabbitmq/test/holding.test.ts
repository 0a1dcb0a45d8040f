import { EventEmitter } from 'node:events'
import type { Channel } from 'amqplib'
import { describe, expect, it } from 'vitest'
import type { RabbitMqDelivery } from '../src/delivery.ts'
import { DrainChannel } from '../src/drain.ts'
import { UnackedDeliveries } from '../src/unacked.ts'

/** A channel that records the calls on it, with two unacknowledged messages. */
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
  const unsettled = new UnackedDeliveries(channel)
  const taken = [1, 2].map((deliveryTag) => {
    const delivery = { raw: { fields: { deliveryTag } } } as unknown as RabbitMqDelivery
    unsettled.add(delivery)
    return { queue: 'orders.dead', delivery }
  })
  return {
    done,
    channel,
    holding: new DrainChannel(channel as unknown as Channel, unsettled, taken),
    taken,
  }
}

const onLost = (cause?: unknown) => new Error('lost', { cause })

describe('a drained batch', () => {
  it('is released when the broker has received the acknowledgements', async () => {
    const { done, holding } = held()
    await holding.releaseAll(onLost)
    expect(done).toEqual(['ack', 'asked', 'close'])
    expect(holding.unackedCount).toBe(0)
  })

  it('rejects the release when the connection ends before the broker has received it', async () => {
    const { channel, holding } = held()
    const cause = new Error('Channel ended, no reply will be forthcoming')
    channel.prefetch = () => {
      channel.end()
      return Promise.reject(cause)
    }
    await expect(holding.releaseAll(onLost)).rejects.toMatchObject({ message: 'lost', cause })
  })

  it('is returned immediately', async () => {
    const { done, holding } = held()
    await holding.abandonAll(onLost)
    expect(done).toEqual(['nack', 'nack', 'close'])
  })

  it('drops a single release when the channel closes at the same time', async () => {
    const { done, channel, holding, taken } = held()
    holding.release(taken[0]?.delivery as RabbitMqDelivery)
    channel.end()
    // Acknowledgements are sent in the next turn of the event loop; on a closed channel they would throw there.
    await new Promise(setImmediate)
    expect(done).toEqual([])
    expect(holding.unackedCount).toBe(0)
    await expect(holding.releaseAll(onLost)).rejects.toThrow('lost')
  })
})
