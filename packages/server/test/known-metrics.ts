import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT } from '@redrive/dev-support'
import { METRICS } from '@redrive/telemetry'

/** Returns the metrics of the runtime and of the server. */
export function knownMetrics(): ReadonlySet<string> {
  const ofRuntime = Object.entries(METRICS).map(([name, { kind, unit }]) => {
    const suffix = `${unit === 's' ? '_seconds' : ''}${kind === 'counter' ? '_total' : ''}`
    return `${name.replaceAll('.', '_')}${suffix}`
  })
  const ofServer = ['metrics', 'catalog-metrics'].flatMap((name) =>
    [
      ...readFileSync(join(ROOT, `packages/server/src/http/${name}.ts`), 'utf8').matchAll(
        /'(redrive_[a-z_]+)'/g,
      ),
    ].map(([, metric = '']) => metric),
  )
  return new Set([...ofRuntime, ...ofServer])
}
