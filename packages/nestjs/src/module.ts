import { type DynamicModule, Module, type Provider } from '@nestjs/common'
import {
  DiscoveryModule,
  DiscoveryService,
  MetadataScanner,
  ModulesContainer,
  Reflector,
} from '@nestjs/core'
import { RedriveConsumers } from './consumers.ts'
import { RedriveHealth } from './health.ts'
import {
  REDRIVE_OPTIONS,
  type RedriveModuleAsyncOptions,
  type RedriveModuleOptions,
} from './options.ts'

/** Starts a consumer for each method with `@Redrive`, in all modules of the app. Import it once, in the root module. */
export class RedriveModule {
  static forRoot(options: RedriveModuleOptions): DynamicModule {
    return moduleWith([{ provide: REDRIVE_OPTIONS, useValue: options }])
  }

  /** Takes the options from other providers, such as a `ConfigService`. */
  static forRootAsync(options: RedriveModuleAsyncOptions): DynamicModule {
    const { imports = [], inject = [], useFactory } = options
    return moduleWith([{ provide: REDRIVE_OPTIONS, inject, useFactory }], imports)
  }
}

// Without the syntax of decorators, so that the package needs no compiler for it.
Module({})(RedriveModule)

function moduleWith(
  providers: readonly Provider[],
  imports: NonNullable<DynamicModule['imports']> = [],
): DynamicModule {
  return {
    module: RedriveModule,
    imports: [DiscoveryModule, ...imports],
    providers: [
      ...providers,
      {
        provide: RedriveConsumers,
        inject: [REDRIVE_OPTIONS, DiscoveryService, MetadataScanner, Reflector, ModulesContainer],
        useFactory: createConsumers,
      },
      {
        provide: RedriveHealth,
        inject: [RedriveConsumers],
        useFactory: (consumers: RedriveConsumers) => new RedriveHealth(consumers),
      },
    ],
    exports: [RedriveConsumers, RedriveHealth],
  }
}

function createConsumers(
  options: RedriveModuleOptions,
  discovery: DiscoveryService,
  scanner: MetadataScanner,
  reflector: Reflector,
  modules: ModulesContainer,
): RedriveConsumers {
  putOutermost(modules)
  return new RedriveConsumers(options, { discovery, scanner, reflector })
}

/**
 * Puts the module before the root module. NestJS starts modules from the innermost to the outermost and destroys them
 * in reverse, so the connections of all other modules work while handlers run.
 */
function putOutermost(modules: ModulesContainer): void {
  const found = [...modules.values()].filter(({ metatype }) => metatype === RedriveModule)
  if (found.length > 1) {
    throw new Error(
      'RedriveModule was imported with different options. Import it once, in the root module.',
    )
  }
  for (const one of found) one.distance = -1
}
