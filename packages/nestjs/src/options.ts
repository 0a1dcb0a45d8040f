import type { FactoryProvider, ModuleMetadata } from '@nestjs/common'
import type { Duration } from '@redrive/core'
import { FUNCTION, readOptions } from '@redrive/core/internal'
import type { Awaitable, ConsumeOptions, Transport } from '@redrive/runtime'
import type { RedriveSource } from './decorator.ts'

/** The options of the module. */
export interface RedriveModuleOptions {
  /** Returns the transport of a handler: `({ source }) => rabbitmq({ url, queue: source })`. */
  readonly transport: (handler: RedriveSource) => Transport
  /** Options of every handler, such as the retry policy. The options of a handler replace them. Default: none. */
  readonly defaults?: ConsumeOptions
  /** Maximum time to stop the consumers when the app closes. Default '25s'. */
  readonly drain?: Duration
}

/** The options of the module, from other providers. */
export interface RedriveModuleAsyncOptions {
  /** Modules whose providers the factory uses. */
  readonly imports?: NonNullable<ModuleMetadata['imports']>
  /** Providers that the factory gets. */
  readonly inject?: NonNullable<FactoryProvider['inject']>
  readonly useFactory: (...given: never[]) => Awaitable<RedriveModuleOptions>
}

/** Token of the options. A test can override it. */
export const REDRIVE_OPTIONS = 'redrive:options'

export interface ResolvedModuleOptions {
  readonly transport: RedriveModuleOptions['transport']
  readonly defaults: ConsumeOptions
  readonly drainMs: number
}

/** Shorter than the 30 s that orchestrators allow between the signal and the kill. */
const DRAIN_MS = 25_000

/** Checks the options of the module. Throws one error that lists every problem. */
export function readModuleOptions(options: RedriveModuleOptions): ResolvedModuleOptions {
  return readOptions('RedriveModule', options, (top) => ({
    transport: top.required<RedriveModuleOptions['transport']>('transport', FUNCTION),
    // `consume` checks them, with those of each handler.
    defaults: (top.raw('defaults') ?? {}) as ConsumeOptions,
    drainMs: top.duration('drain', DRAIN_MS),
  }))
}
