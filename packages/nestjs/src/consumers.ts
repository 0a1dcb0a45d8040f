import { Logger } from '@nestjs/common'
import {
  type Consumer,
  type ConsumerSet,
  type ConsumerSetHealth,
  consume,
  consumerSet,
} from '@redrive/runtime'
import { type FoundHandler, findHandlers, type HandlerSearch } from './handlers.ts'
import { readModuleOptions, type RedriveModuleOptions } from './options.ts'

/**
 * The consumers of the app. They start after every module has started, and stop before any module is destroyed.
 * Inject it to pause a consumer, or to read its state.
 */
export class RedriveConsumers {
  readonly #options: RedriveModuleOptions
  readonly #search: HandlerSearch
  #set: ConsumerSet = consumerSet({})

  /** @internal */
  constructor(options: RedriveModuleOptions, search: HandlerSearch) {
    this.#options = options
    this.#search = search
  }

  /** Running consumers by the name of their handler, such as `OrderService.charge`. */
  get running(): ReadonlyMap<string, Consumer> {
    return this.#set.running
  }

  /** True from the end of the start until the app is destroyed. */
  get isRunning(): boolean {
    return this.#set.isRunning
  }

  health(): ConsumerSetHealth {
    return this.#set.health()
  }

  /** NestJS calls it. */
  async onApplicationBootstrap(): Promise<void> {
    const { transport, defaults } = readModuleOptions(this.#options)
    const start = ({ name, options, handle }: FoundHandler) => {
      const { source, broker, ...given } = options
      const handler = broker === undefined ? { source } : { source, broker }
      const merged = { logger: new Logger(`Redrive ${name}`), ...defaults, ...given }
      return consume(transport(handler), handle, merged)
    }
    const found = findHandlers(this.#search)
    this.#set = consumerSet(
      Object.fromEntries(found.map((one) => [one.name, () => start(one)] as const)),
    )
    await this.#set.start()
  }

  /** NestJS calls it. */
  async onModuleDestroy(): Promise<void> {
    const { drainMs } = readModuleOptions(this.#options)
    await this.#set.stop({ drain: drainMs })
  }
}
