import type { DynamicModule } from '@nestjs/common'
import { type MemoryBroker, memory } from '@redrive/memory'
import type { ConsumeOptions } from '@redrive/runtime'
import { RedriveModule } from './module.ts'
import type { RedriveModuleOptions } from './options.ts'

/** The options of `RedriveTestingModule`. */
export interface RedriveTestingOptions {
  readonly broker: MemoryBroker
  /** Options of every handler, such as a `clock` that the test advances. Default: none. */
  readonly defaults?: ConsumeOptions
}

/** Replaces `RedriveModule` in a test: every source is a queue of a broker in memory. */
export class RedriveTestingModule {
  static forRoot(options: RedriveTestingOptions): DynamicModule {
    return RedriveModule.forRoot(memoryOptions(options))
  }
}

/** Options of `RedriveModule` for a test that overrides the provider `REDRIVE_OPTIONS` of a whole app. */
export function memoryOptions({
  broker,
  defaults = {},
}: RedriveTestingOptions): RedriveModuleOptions {
  return { transport: ({ source }) => memory({ broker, queue: source }), defaults }
}
