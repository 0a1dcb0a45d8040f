import { business, type Decision, fixed, type PolicyOptions } from '@redrive/core'
import { GUARDS_OFF } from '@redrive/dev-support'
import { type RabbitMqDelivery, rabbitmq } from '@redrive/rabbitmq'
import { consume, type Transport } from '@redrive/runtime'
import { Declined } from '../handlers.ts'
import type { Contender, Stage } from './contender.ts'

type RabbitMq = Transport<RabbitMqDelivery>

/** Returns `consume(rabbitmq(…), handler, policy)`, paused between the samples. */
export const redrive =
  (policy: PolicyOptions, around: (transport: RabbitMq) => RabbitMq = (same) => same) =>
  async ({ url, queue, prefetch, handler }: Stage): Promise<Contender> => {
    const transport = around(rabbitmq({ url, queue }))
    const consumer = await consume(transport, handler, { concurrency: prefetch, ...policy })
    return {
      start: () => consumer.resume(),
      stop: () => consumer.pause(),
      close: () => consumer.stop(),
    }
  }

/**
 * Every failure is final, and a flood of failures does not stop the consumer, because it is
 * measured.
 */
export const GIVING_UP: PolicyOptions = {
  classify: [business(Declined)],
  flood: 'off',
  adaptiveConcurrency: 'off',
}

/** All guards are off that would slow down or stop a consumer that only fails. */
export const retrying = (attempts: number): PolicyOptions => ({
  retry: { attempts, maxInlineDelay: 0, backoff: fixed('1ms'), minDelay: '1ms' },
  ...GUARDS_OFF,
})

/**
 * Sends retries directly back to their queue. No policy allows this, because Redrive exists to
 * prevent retries without a delay. The handwritten loop has no delay, and waiting in a delay queue
 * would hide the cost of the hand-off.
 */
export function withoutDelay(transport: RabbitMq): RabbitMq {
  return {
    source: transport.source,
    capabilities: transport.capabilities,
    open: (needs) => transport.open(needs),
    receive: (receiver) => transport.receive(receiver),
    enact: (delivery, decision) => transport.enact(delivery, atOnce(decision)),
    limit: (count) => transport.limit(count),
    pause: () => transport.pause(),
    resume: () => transport.resume(),
    close: (options) => transport.close(options),
  }
}

const atOnce = (decision: Decision): Decision =>
  decision.kind === 'retryAt' ? { ...decision, delayMs: 0 } : decision
