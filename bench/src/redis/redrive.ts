import { business, type PolicyOptions } from '@redrive/core'
import { redisStream, topologyOf } from '@redrive/redis'
import { consume } from '@redrive/runtime'
import { Declined } from '../handlers.ts'
import { type Contender, fillStream, GROUP, IN_FLIGHT, lookAt, type Stage } from './contender.ts'

/** Every failure is final, and a flood of failures does not stop the consumer, because it is measured. */
export const GIVING_UP: PolicyOptions = {
  classify: [business(Declined)],
  flood: 'off',
  adaptiveConcurrency: 'off',
}

/** Returns `consume(redisStream(…), handler, policy)`, paused between the samples. */
export const redrive =
  (policy: PolicyOptions) =>
  async ({ name, client, handler }: Stage): Promise<Contender> => {
    const { group: _, ...keys } = topologyOf(name, GROUP)
    const transport = redisStream({ client, stream: name, group: GROUP })
    const consumer = await consume(transport, handler, {
      concurrency: IN_FLIGHT,
      logger: 'off',
      ...policy,
    })
    consumer.pause()
    return {
      async fill(count) {
        await client.xtrim(name, 'MAXLEN', 0)
        await client.del(keys.deadLetters)
        await fillStream(client, name, count)
      },
      start: () => consumer.resume(),
      stop: () => consumer.pause(),
      async close() {
        await consumer.stop()
        await client.del(Object.values(keys))
      },
      look: () => lookAt(client, name, keys.deadLetters),
    }
  }
