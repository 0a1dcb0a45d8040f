export type { RedriveFastifyOptions } from './options.ts'
export { redrive } from './plugin.ts'
