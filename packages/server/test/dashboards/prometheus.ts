import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort, ROOT, services } from '@redrive/dev-support'
import { prometheus } from '@redrive/telemetry'
import { until } from '@redrive/testing'
import { stringify } from 'yaml'

/** A line of a chart: labels, and seconds with values. */
export interface Line {
  readonly metric: Readonly<Record<string, string>>
  readonly values: readonly (readonly [seconds: number, value: string])[]
}

export interface RunningPrometheus {
  /** Queries a range with a point each second. */
  readonly range: (expr: string, fromMs: number, toMs: number) => Promise<readonly Line[]>
  readonly close: () => Promise<void>
}

/** Starts a Prometheus that scrapes these addresses each second, with the alert rules of this repository. */
export async function startPrometheus(
  targets: Readonly<Record<string, string>>,
): Promise<RunningPrometheus> {
  await services('up', 'prometheus')
  const program = await services('do', 'prometheus', 'path')
  const folder = mkdtempSync(join(tmpdir(), 'redrive-prometheus-'))
  const address = `127.0.0.1:${await freePort()}`
  const config = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [join(ROOT, 'ops/prometheus/*.yaml')],
    scrape_configs: Object.entries(targets).map(([job, target]) => ({
      job_name: job,
      static_configs: [{ targets: [target] }],
    })),
  }
  writeFileSync(join(folder, 'prometheus.yaml'), stringify(config))
  const args = [
    `--config.file=${join(folder, 'prometheus.yaml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=${address}`,
  ]
  const child = spawn(program, args, { stdio: 'ignore' })
  const exited = once(child, 'exit')
  const ask = async (path: string) => (await fetch(`http://${address}${path}`)).text()
  await until('Prometheus is ready', () => ask('/-/ready').then((text) => text.includes('Ready')))
  return {
    async range(expr, fromMs, toMs) {
      const query = new URLSearchParams({
        query: expr,
        start: String(fromMs / 1_000),
        end: String(toMs / 1_000),
        step: '1',
      })
      const text = await ask(`/api/v1/query_range?${query.toString()}`)
      const { status, error, data } = JSON.parse(text) as {
        readonly status: string
        readonly error?: string
        readonly data: { readonly result: readonly Line[] }
      }
      if (status !== 'success') throw new Error(`${expr}: ${error}`)
      return data.result
    },
    async close() {
      child.kill('SIGTERM')
      await exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Serves the metrics of the consumers and emitters of this process. */
export async function serveMetrics() {
  const metrics = prometheus()
  const server = createServer((_, response) => {
    response.setHeader('content-type', metrics.contentType).end(metrics.text())
  })
  const port = await freePort()
  await once(server.listen(port, '127.0.0.1'), 'listening')
  return {
    address: `127.0.0.1:${port}`,
    close: () => {
      metrics.close()
      server.close()
      server.closeAllConnections()
    },
  }
}
