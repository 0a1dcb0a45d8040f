/** The page of metrics, from the table that the exporters read. */
import { readFileSync } from 'node:fs'
import { METRIC_NAMES, METRICS } from '../../packages/telemetry/src/metrics.ts'
import { prometheusName } from '../../packages/telemetry/src/prometheus.ts'
import { code, type Page, pageText, table } from './markdown.ts'

const INTRO = `Metrics of consumers and emitters, exported by \`@redrive/telemetry\` ([guide](../telemetry.md)). \
The first name is for Prometheus, the second for OpenTelemetry. In OpenTelemetry, the label \`source\` is \
\`messaging.destination.name\`, \`error_type\` is \`error.type\`, and the others have the prefix \`redrive.\`.`

const ALIASES = 'ops/prometheus/redrive.aliases.yaml'

const ALIASES_INTRO = `Dashboards and alerts of other systems expect other names. The optional recording rules in \
[${ALIASES}](../../${ALIASES}) give Redrive's metrics these names. Labels stay as they are.`

/** Returns the table of the recording rules: the other name, and the metric of Redrive. */
function aliasesTable(): string {
  const text = readFileSync(new URL(`../../${ALIASES}`, import.meta.url), 'utf8')
  const rows = [...text.matchAll(/- record: (\w+)\n\s+expr: '(.+)'/g)].map(
    ([, name = '', expr = '']) => [code(name), code(expr)],
  )
  return table(['other name', 'value'], rows)
}

/** Generates the page from the table. */
export function metricsPage(): Page {
  const rows = METRIC_NAMES.map((name) => {
    const { kind, unit, labels, meaning, alias } = METRICS[name]
    const also = alias === undefined ? '' : ` ${code(alias.name)} has the same values.`
    return [
      [prometheusName(name), name].map(code).join(', '),
      unit === '1' || unit.startsWith('{') ? kind : `${kind}, ${unit}`,
      labels.map(code).join(', '),
      `${meaning}${also}`,
    ]
  })
  return {
    text: pageText(
      'Metrics',
      ['packages/telemetry/src/metrics.ts', ALIASES],
      [
        INTRO,
        table(['name', 'kind', 'labels', 'meaning'], rows),
        '## Other names',
        ALIASES_INTRO,
        aliasesTable(),
      ],
    ),
    problems: [],
  }
}
