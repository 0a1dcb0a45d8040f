import { allows } from '../access/allow.ts'
import type { OperationDeps } from './context.ts'
import type { Handlers } from './handlers.ts'

/** Lists what the config hides. The names of masked values are not secret: filters by them are refused by name. */
export function masks({ reading }: OperationDeps): Handlers<'listMasks'> {
  return {
    async listMasks(caller) {
      const sources = reading.sources
        .filter((source) => allows(caller, 'view', source))
        .map((source) => ({
          source,
          paths: reading.masks(source).map(({ pointer, isOptional }) => ({ pointer, isOptional })),
          headers: [...reading.maskedHeaders(source)],
        }))
        .filter(({ paths, headers }) => paths.length > 0 || headers.length > 0)
      return { sources, detectors: [...reading.detectors] }
    },
  }
}
