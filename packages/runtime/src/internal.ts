/** For packages of this repository; it can change in any version. */
export { watchAll } from './events.ts'
export { readHealth, type ResolvedHealth } from './health/options.ts'
export { type HealthResponse, healthRoutes, readinessOf } from './health/routes.ts'
export { type Instrument, type InstrumentedRun, instrumentRuns } from './instrument.ts'
export { Leases, type LeasesOptions } from './leases.ts'
export { isUnfinished } from './ports/transport.ts'
export { openEmitters, type RunningConsumer, runningConsumers } from './process-parts.ts'
export { withTimeout } from './timeout.ts'
