import { business, type Decision, fixed, type PolicyOptions } from '@redrive/core'
import { type RabbitMqDelivery, rabbitmq } from '@redrive/rabbitmq'
import { consume, type Transport } from '@redrive/runtime'
import { Declined } from '../handlers.ts'
import type { Contender, Stage } from './contender.ts'

type RabbitMq = Transport<RabbitMqDelivery>

/** `consume(rabbitmq(…), handler, policy)`, paused between the samples. */
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

/** Every failure is final, and no flood of them stops the consumer: it is what is measured. */
export const GIVING_UP: PolicyOptions = {
  classify: [business(Declined)],
  flood: 'off',
  limit: 'off',
}

/** Nothing but the way of a retry: whatever would slow down or stop a consumer that only fails is off. */
export const retrying = (attempts: number): PolicyOptions => ({
  retry: { attempts, inlineBelow: 0, backoff: fixed('1ms'), floor: '1ms' },
  breaker: 'off',
  outage: 'off',
  limit: 'off',
  budget: 'off',
  poison: 'off',
  flood: 'off',
})

/**
 * Retries go straight back to their queue. No policy says so, because a retry without any delay is
 * what Redrive exists to prevent; but the hand-written loop has none, and waiting in a delay queue
 * would hide what the hand-off costs.
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
