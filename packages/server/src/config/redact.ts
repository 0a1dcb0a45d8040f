import type { Config } from './schema.ts'
import { shownAddress } from './values.ts'

/** Returns the config as plain data, with `***` instead of every secret. */
export function redactConfig(config: Config): Record<string, unknown> {
  const { listen, metrics } = config
  const shown = {
    ...config,
    listen: shownAddress(listen),
    metrics: metrics.listen === undefined ? {} : { listen: shownAddress(metrics.listen) },
  }
  // `Secret` serializes itself as a redacted text.
  return JSON.parse(JSON.stringify(shown)) as Record<string, unknown>
}
