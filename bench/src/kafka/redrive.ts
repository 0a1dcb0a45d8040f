import { business, fixed, type PolicyOptions } from '@redrive/core'
import { GUARDS_OFF } from '@redrive/dev-support'
import { type KafkaOptions, kafka } from '@redrive/kafka'
import { consume } from '@redrive/runtime'
import { Declined } from '../handlers.ts'
import type { Contender, Stage } from './contender.ts'

/** Returns `consume(kafka(…), handler, policy)`, paused between the samples. */
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
export const FIXED: PolicyOptions = { adaptiveConcurrency: 'off' }

/** The error is classified as final. A guard would slow down or stop a consumer that only fails. */
export const GIVING_UP: PolicyOptions = { ...GUARDS_OFF, classify: [business(Declined)] }

/** The longest delay, so that nothing comes back during the measurement. */
export const RETRYING: PolicyOptions = {
  ...GUARDS_OFF,
  retry: { attempts: 5, maxInlineDelay: 0, backoff: fixed('1h') },
}
