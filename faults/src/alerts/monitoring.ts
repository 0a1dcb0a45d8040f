import { spawn } from 'node:child_process'
import { openSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { stringify } from 'yaml'
import { freePort } from '../harness/listening.ts'
import { type Child, followed } from '../harness/process.ts'
import { services } from '../harness/services.ts'
import { until } from '../harness/wait.ts'
import { drillRules } from './rules.ts'

/** Prometheus and Alertmanager as processes. */
export interface Monitoring {
  /** Address of Alertmanager. */
  readonly url: string
  end(): Promise<void>
}

/** 30 s: each starts within seconds on a busy machine. */
const START = { withinMs: 30_000 }

export interface MonitoringOptions {
  readonly folder: string
  /** Addresses of `/metrics`, by name. */
  readonly targets: Readonly<Record<string, string>>
  /** The factor that shortens the times of the rules. */
  readonly factor: number
}

/** Starts both. Prometheus reads the targets each second and evaluates the scaled rules. */
export async function startMonitoring(options: MonitoringOptions): Promise<Monitoring> {
  const alertmanager = `127.0.0.1:${await freePort()}`
  const receiver = await startAlertmanager(options.folder, alertmanager)
  const prometheus = await startPrometheus(alertmanager, options)
  return {
    url: `http://${alertmanager}`,
    async end() {
      await prometheus.kill()
      await receiver.kill()
    },
  }
}

async function startAlertmanager(folder: string, address: string): Promise<Child> {
  const config = join(folder, 'alertmanager.yaml')
  const route = { receiver: 'drill', group_by: ['alertname'], group_wait: '1s' }
  writeFileSync(config, stringify({ route, receivers: [{ name: 'drill' }] }))
  return start('alertmanager', folder, address, [
    `--config.file=${config}`,
    `--storage.path=${join(folder, 'alertmanager')}`,
    `--web.listen-address=${address}`,
    // Without peers, which would need a network.
    '--cluster.listen-address=',
  ])
}

async function startPrometheus(
  alertmanager: string,
  { folder, targets, factor }: MonitoringOptions,
): Promise<Child> {
  const address = `127.0.0.1:${await freePort()}`
  const [config, rules] = [join(folder, 'prometheus.yaml'), join(folder, 'rules.yaml')]
  writeFileSync(rules, drillRules(factor))
  const content = {
    global: { scrape_interval: '1s', evaluation_interval: '1s' },
    rule_files: [rules],
    alerting: { alertmanagers: [{ static_configs: [{ targets: [alertmanager] }] }] },
    scrape_configs: Object.entries(targets).map(([name, target]) => ({
      job_name: name,
      static_configs: [{ targets: [target] }],
    })),
  }
  writeFileSync(config, stringify(content))
  return start('prometheus', folder, address, [
    `--config.file=${config}`,
    `--storage.tsdb.path=${join(folder, 'prometheus')}`,
    `--web.listen-address=${address}`,
  ])
}

async function start(
  name: string,
  folder: string,
  address: string,
  args: readonly string[],
): Promise<Child> {
  await services('up', name)
  const program = await services('do', name, 'path')
  const log = openSync(join(folder, `${name}.log`), 'a')
  const child = followed(spawn(program, args, { stdio: ['ignore', log, log] }), name)
  const isReady = async () => {
    if (!child.isAlive)
      throw new Error(`${name} ended before it was ready; see its log in ${folder}`)
    // Not listening yet: the connection is refused.
    return fetch(`http://${address}/-/ready`).then(
      ({ ok }) => ok,
      () => false,
    )
  }
  await until(`${name} is ready`, isReady, START)
  return child
}
