import type { ConsumerSetHealth } from '@redrive/runtime'
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

  /** Returns `down` while a consumer is down, with the reasons of each consumer. A degraded consumer works. */
  isHealthy<const Key extends string>(key: Key): RedriveHealthResult<Key> {
    const { status, consumers } = this.#consumers.health()
    const result = { status: status === 'down' ? 'down' : 'up', consumers } as const
    return { [key]: result } as RedriveHealthResult<Key>
  }
}
