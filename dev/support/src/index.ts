export { type Authority, authority, certificate } from './certificates.ts'
export { type ConfiguredProgram, startConfigured } from './configured-program.ts'
export { deadLetter, drop, failedCycle, giveBack, quarantine, retryIn } from './decisions.ts'
export { GUARDS_OFF } from './policies.ts'
export {
  controlPlane,
  type InstalledService,
  type PackedPackages,
  packPackages,
  runInstalled,
  type ServiceResult,
} from './packed-service.ts'
export { freePort } from './ports.ts'
export {
  createDatabase,
  dropDatabase,
  emptyDatabase,
  ignoreConnectionErrors,
  poolOn,
} from './postgres.ts'
export { type RunningProgram, runProgram } from './program.ts'
export { type Registry, serveTarballs } from './registry.ts'
export { refusal } from './rejections.ts'
export { aDelivery, aFailure } from './samples.ts'
export { ROOT, services, urlOf, urlsOf } from './services.ts'
