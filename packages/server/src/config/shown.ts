import type { Config } from './schema.ts'
import { shownAddress } from './values.ts'

/** As plain data that could be written down again, with `***` for every secret. */
export function shownConfig(config: Config): Record<string, unknown> {
  const { listen, metrics } = config
  const shown = {
    ...config,
    listen: shownAddress(listen),
    metrics: metrics.listen === undefined ? {} : { listen: shownAddress(metrics.listen) },
  }
  // Secrets say what they are when they become JSON.
  return JSON.parse(JSON.stringify(shown)) as Record<string, unknown>
}
