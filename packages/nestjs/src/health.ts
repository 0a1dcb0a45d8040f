import type { ConsumerSetHealth, HealthOptions } from '@redrive/runtime'
import { readinessOf } from '@redrive/runtime/internal'
import type { RedriveConsumers } from './consumers.ts'

/** The result of a health indicator, in the shape of `@nestjs/terminus`. */
export type RedriveHealthResult<Key extends string = string> = Readonly<
  Record<
    Key,
    {
      readonly status: 'up' | 'down'
      readonly consumers: ConsumerSetHealth['consumers']
    }
  >
>

/** A health indicator for `@nestjs/terminus`, which it does not need. */
export class RedriveHealth {
  readonly #consumers: RedriveConsumers

  /** @internal */
  constructor(consumers: RedriveConsumers) {
    this.#consumers = consumers
  }

  /**
   * Returns `up` while no consumer is down, with the reasons of each consumer. `ready` has the same values as for
   * `healthHandler`.
   */
  isHealthy<const Key extends string>(
    key: Key,
    { ready = 'consuming' }: Pick<HealthOptions, 'ready'> = {},
  ): RedriveHealthResult<Key> {
    const { status, body } = readinessOf(this.#consumers, ready)
    const result = { status: status === 200 ? 'up' : 'down', consumers: body.consumers } as const
    return { [key]: result } as RedriveHealthResult<Key>
  }
}
