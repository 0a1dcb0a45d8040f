export { type Label, type MetricName, type MetricRow, METRICS } from './metrics.ts'
export { type PrometheusMetrics, prometheus } from './prometheus.ts'
