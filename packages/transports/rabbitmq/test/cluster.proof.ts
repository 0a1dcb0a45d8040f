import { services, urlsOf } from '@redrive/dev-support'
import { exerciseTransport } from '@redrive/testing'
import type { Channel } from 'amqplib'
import { describe, expect, it } from 'vitest'
import { CAPABILITIES } from '../src/capabilities.ts'
import { type Line, onRig, until } from './rig.ts'
import { rabbitmqWorld } from './world.ts'

const urls = await urlsOf('rabbitmq-cluster', 'amqp')
const [first = '', second = ''] = urls

const killFirst = () => services('do', 'rabbitmq-cluster', 'kill_node', '1')
const startFirst = () => services('do', 'rabbitmq-cluster', 'start_node', '1')

/** A node restarts in seconds; then its queues detect the lost consumers. */
const BACK_MS = 120_000

describe('a node that crashes', () => {
  it(
    'keeps no delivery when the prefetch of a consumer changes at the same time',
    onRig(second, async (rig) => {
      let asked = 0
      const onChannel = (channel: Channel, { purpose }: Line) => {
        if (purpose !== 'consume') return
        const consume = channel.consume.bind(channel)
        channel.consume = (...request) => {
          // A subscription has no options; the checks at the start have.
          if (request[2] === undefined) asked += 1
          // The node crashes with this request.
          return asked === 2 ? new Promise(() => undefined) : consume(...request)
        }
      }
      const url = [first, second]
      const { transport, inbox } = await rig.start({ url, limit: 4, hooks: { onChannel } })
      for (const body of ['a', 'b', 'c', 'd']) await rig.send(body)
      await inbox.nth(4)
      transport.limit(20)
      await until('a larger prefetch is requested', () => asked === 2)
      await killFirst()
      await startFirst()
      await inbox.nth(8, { timeout: BACK_MS })
      expect(inbox.bodies.slice(4).toSorted()).toEqual(['a', 'b', 'c', 'd'])
    }),
    2 * BACK_MS,
  )
})

exerciseTransport({
  runner: { describe, it },
  name: 'rabbitmq, three nodes',
  capabilities: CAPABILITIES,
  open: () => rabbitmqWorld(urls),
  // The node with all connections stops and restarts.
  restartBroker: async () => {
    await killFirst()
    await startFirst()
  },
  // Every queue has three members on the same few cores.
  deadline: '120s',
})
