export type { HealthRouteOptions, RedriveFastifyOptions } from './options.ts'
export { redrive } from './plugin.ts'
