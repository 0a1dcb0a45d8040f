import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, ROOT, services } from '@redrive/dev-support'
import { chromium } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rabbitmqUrl, serveDatabase, serving } from '../serve-stage.ts'
import { type Drawn, drawing } from './drawing.ts'
import { playIncident } from './incident.ts'
import { type Line, type RunningPrometheus, serveMetrics, startPrometheus } from './prometheus.ts'
import { openShop } from './shop.ts'

interface GrafanaPanel {
  readonly type: 'timeseries' | 'stat' | 'row'
  readonly title: string
  readonly description?: string
  readonly gridPos: Drawn['gridPos']
  readonly fieldConfig?: Drawn['fieldConfig']
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[]
}

interface GrafanaDashboard {
  readonly title: string
  readonly panels: readonly GrafanaPanel[]
}

/** Panels that need a fault which this drill does not have: partitions exist in Kafka only, and the broker is not killed. */
const RARE = ['Partitions', 'Exceptional events']
/** Grafana uses at least four scrape intervals. With one scrape each second, 10 s keeps short events visible. */
const RATE_INTERVAL = '10s'

const FOLDER = join(ROOT, 'ops/grafana')
const dashboards = readdirSync(FOLDER)
  .filter((name) => name.endsWith('.json'))
  .map((name) => ({
    name: name.replace('.json', ''),
    ...(JSON.parse(readFileSync(join(FOLDER, name), 'utf8')) as GrafanaDashboard),
  }))

let prometheus: RunningPrometheus
let span: { readonly fromMs: number; readonly toMs: number }

beforeAll(async () => {
  const url = await rabbitmqUrl()
  const { base } = await serveDatabase('redrive_server_dashboards')
  const metrics = await serveMetrics()
  const shop = await openShop(url, 'orders')
  const listen = `127.0.0.1:${await freePort()}`
  const config = {
    ...base,
    metrics: { listen },
    sources: { orders: { rabbitmq: { url, queue: 'orders' } } },
  }
  const server = await serving(config)
  prometheus = await startPrometheus({ shop: metrics.address, server: listen })
  const fromMs = Date.now()
  try {
    await playIncident(shop, server)
    span = { fromMs, toMs: Date.now() }
  } finally {
    await shop.close()
    await server.kill()
    metrics.close()
  }
}, 300_000)
afterAll(() => prometheus?.close())

/** Returns the query as Grafana sends it when all values of the variables are chosen. */
function expanded(expr: string): string {
  const seconds = Math.ceil((span.toMs - span.fromMs) / 1_000)
  return expr
    .replaceAll('$__rate_interval', RATE_INTERVAL)
    .replaceAll('$__range', `${seconds}s`)
    .replaceAll(/\$(source|handler|sink|dependency)/g, '.+')
}

const hasValue = ({ values }: Line) => values.some(([, value]) => Number.isFinite(Number(value)))
/** Labels that a legend shows and no line has. */
const missingLabels = (legend: string, lines: readonly Line[]) =>
  [...legend.matchAll(/\{\{(\w+)\}\}/g)]
    .map(([, label = '']) => label)
    .filter((label) => !lines.some(({ metric }) => metric[label] !== undefined))

test.each(dashboards)('each query of $title returns data', async ({ panels }) => {
  const empty: string[] = []
  for (const { title, targets = [] } of panels) {
    for (const { expr, legendFormat } of targets) {
      const lines = await prometheus.range(expanded(expr), span.fromMs, span.toMs)
      const isEmpty = !lines.some(hasValue)
      if (isEmpty && !RARE.includes(title)) empty.push(`${title}: ${expr}`)
      const missing = isEmpty ? [] : missingLabels(legendFormat, lines)
      if (missing.length > 0) empty.push(`${title}: no label ${missing.join(', ')} in ${expr}`)
    }
  }
  expect(empty).toEqual([])
})

test('each alias has a value', async () => {
  const text = readFileSync(join(ROOT, 'ops/prometheus/redrive.aliases.yaml'), 'utf8')
  const names = [...text.matchAll(/- record: (\w+)/g)].map(([, name = '']) => name)
  const empty: string[] = []
  for (const name of names) {
    const lines = await prometheus.range(name, span.fromMs, span.toMs)
    if (!lines.some(hasValue)) empty.push(name)
  }
  expect(names.length).toBeGreaterThan(10)
  expect(empty).toEqual([])
})

test('the dashboards are drawn to .reports/dashboards', async () => {
  await services('up', 'chromium')
  const executablePath = await services('do', 'chromium', 'path')
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] })
  const folder = join(ROOT, '.reports/dashboards')
  mkdirSync(folder, { recursive: true })
  try {
    const page = await browser.newPage({ viewport: { width: 1440, height: 900 } })
    for (const { name, title, panels } of dashboards) {
      const drawn = await Promise.all(
        panels.map(async (panel) => ({ ...panel, lines: await linesOf(panel) })),
      )
      await page.setContent(drawing(title, drawn, span))
      const picture = await page.locator('svg').screenshot()
      writeFileSync(join(folder, `${name}.png`), picture)
      expect(picture.length).toBeGreaterThan(10_000)
    }
  } finally {
    await browser.close()
  }
})

/** Returns the lines of a panel with their names, as in its legend. */
async function linesOf({ targets = [] }: GrafanaPanel): Promise<Drawn['lines']> {
  const all = await Promise.all(
    targets.map(async ({ expr, legendFormat }) => {
      const lines = await prometheus.range(expanded(expr), span.fromMs, span.toMs)
      return lines.map(({ metric, values }) => ({
        name: legendFormat.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => metric[label] ?? ''),
        points: values
          .map(([seconds, value]) => [seconds * 1_000, Number(value)] as const)
          .filter(([, value]) => Number.isFinite(value)),
      }))
    }),
  )
  return all.flat()
}
