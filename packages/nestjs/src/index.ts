export { RedriveConsumers } from './consumers.ts'
export {
  Redrive,
  type RedriveDecorator,
  type RedriveHandlerOptions,
  type RedriveSource,
} from './decorator.ts'
export { RedriveHealth, type RedriveHealthResult } from './health.ts'
export { RedriveModule } from './module.ts'
export {
  REDRIVE_OPTIONS,
  type RedriveModuleAsyncOptions,
  type RedriveModuleOptions,
} from './options.ts'
