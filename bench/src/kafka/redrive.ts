import { business, fixed, type PolicyOptions } from '@redrive/core'
import { type KafkaOptions, kafka } from '@redrive/kafka'
import { consume } from '@redrive/runtime'
import { Declined } from '../handlers.ts'
import type { Contender, Stage } from './contender.ts'

/** `consume(kafka(…), handler, policy)`, paused between the samples. */
export const redrive =
  (policy: PolicyOptions, own: Partial<KafkaOptions> = {}) =>
  async ({ hosts, topic, group, concurrency, handler, gate }: Stage): Promise<Contender> => {
    const transport = kafka({ brokers: hosts, topic, group, client: { context: gate }, ...own })
    const consumer = await consume(transport, handler, { concurrency, ...policy })
    return {
      start: () => consumer.resume(),
      async stop() {
        consumer.pause()
        await transport.committed()
      },
      close: () => consumer.stop(),
    }
  }

/** The number in flight is the same from the first record on. */
export const FIXED: PolicyOptions = { limit: 'off' }

/** Whatever would slow down or stop a consumer that only fails is off. */
export const ONLY_FAILING: PolicyOptions = {
  breaker: 'off',
  outage: 'off',
  limit: 'off',
  budget: 'off',
  poison: 'off',
  flood: 'off',
}

/** The error is known to be final. */
export const GIVING_UP: PolicyOptions = { ...ONLY_FAILING, classify: [business(Declined)] }

/** The longest tier: nothing comes back while it is measured how it got there. */
export const RETRYING: PolicyOptions = {
  ...ONLY_FAILING,
  retry: { attempts: 5, inlineBelow: 0, backoff: fixed('1h') },
}
