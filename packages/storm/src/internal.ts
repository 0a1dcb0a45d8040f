/** Exports for packages of this repository. They can change in any version. */
export { expectedDrainMs } from './minimum.ts'
export { drainRatio, GOALS } from './report.ts'
export { CALM_MS, PROCESSES, TIMEOUT_MS } from './storm.ts'
export { VirtualTime } from './time.ts'
