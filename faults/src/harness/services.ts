import { fileURLToPath } from 'node:url'

export { services, urlsOf } from '@redrive/dev-support'

/** Root of the running sources. A mutant runs in a copy, so this is not always the repository. */
export const ROOT: string = fileURLToPath(new URL('../../../', import.meta.url))
