/** The page of metrics, from the table that the exporters read. */
import { METRIC_NAMES, METRICS } from '../../packages/telemetry/src/metrics.ts'
import { prometheusName } from '../../packages/telemetry/src/prometheus.ts'
import { code, type Page, pageText, table } from './markdown.ts'

const INTRO = `Metrics of consumers and emitters, exported by \`@redrive/telemetry\` ([guide](../telemetry.md)). \
The first name is for Prometheus, the second for OpenTelemetry. In OpenTelemetry, the label \`source\` is \
\`messaging.destination.name\`, \`error_type\` is \`error.type\`, and the others have the prefix \`redrive.\`.`

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
      ['packages/telemetry/src/metrics.ts'],
      [INTRO, table(['name', 'kind', 'labels', 'meaning'], rows)],
    ),
    problems: [],
  }
}
