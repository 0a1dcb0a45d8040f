import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT, services } from '@redrive/dev-support'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments, stringify } from 'yaml'
import { loadConfig } from '../src/index.ts'

const CHART = join(ROOT, 'ops/helm/redrive')
/** The oldest Kubernetes of the chart. */
const KUBERNETES = '1.29.0'
const folder = mkdtempSync(join(tmpdir(), 'redrive-chart-'))
afterAll(() => rmSync(folder, { recursive: true }))

let helm = 'helm'
beforeAll(async () => {
  await services('up', 'helm')
  helm = await services('do', 'helm', 'path')
}, 900_000)

type Labels = Readonly<Record<string, string>>
interface Container {
  readonly args: readonly string[]
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly securityContext: object
  readonly volumeMounts: readonly object[]
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[]
  readonly livenessProbe?: Probe
  readonly readinessProbe?: Probe
  readonly startupProbe?: Probe
}
interface Probe {
  readonly httpGet: { readonly path: string; readonly port: string; readonly scheme: string }
}
interface Kubernetes {
  readonly kind: string
  readonly metadata: { readonly name: string }
  readonly data: Labels
  readonly spec: {
    readonly replicas?: number
    readonly selector: Labels & { readonly matchLabels: Labels }
    readonly podSelector: { readonly matchLabels: Labels }
    readonly ingress: readonly { readonly ports: readonly { readonly port: string }[] }[]
    readonly maxUnavailable?: number
    readonly scaleTargetRef: { readonly name: string }
    readonly metrics: readonly object[]
    readonly template: {
      readonly metadata: { readonly labels: Labels }
      readonly spec: {
        readonly automountServiceAccountToken: boolean
        readonly securityContext: object
        readonly terminationGracePeriodSeconds: number
        readonly initContainers?: readonly Container[]
        readonly volumes: readonly object[]
        readonly containers: readonly [Container]
      }
    }
  }
}

/** Renders the chart with these values over its defaults. */
function render(values: object): {
  readonly problem: string
  readonly objects: readonly Kubernetes[]
} {
  const file = join(folder, 'values.yaml')
  writeFileSync(file, stringify(values))
  const args = ['template', 'demo', CHART, '--kube-version', KUBERNETES, '-f', file]
  const { stdout, stderr } = spawnSync(helm, args, { encoding: 'utf8' })
  const objects = parseAllDocuments(stdout).map((document) => document.toJS() as Kubernetes | null)
  return { problem: stderr, objects: objects.filter((one) => one !== null) }
}

const ofKind = (objects: readonly Kubernetes[], kind: string) =>
  objects.filter((one) => one.kind === kind)
const podsOf = (objects: readonly Kubernetes[], selector: Labels) =>
  ofKind(objects, 'Deployment')
    .filter(({ spec }) => {
      const { labels } = spec.template.metadata
      return Object.entries(selector).every(([name, value]) => labels[name] === value)
    })
    .map(({ metadata }) => metadata.name)

describe('the chart', () => {
  test('passes the lint of Helm', () => {
    const { status, stdout } = spawnSync(helm, ['lint', '--strict', CHART], { encoding: 'utf8' })
    expect(stdout).toContain('0 chart(s) failed')
    expect(status).toBe(0)
  })

  test('runs users and brokers in separate pods, not as root, on a file system that is read-only', () => {
    const { objects, problem } = render({})
    expect(problem).toBe('')
    const deployments = ofKind(objects, 'Deployment')
    const started = deployments.map(({ spec }) => spec.template.spec.containers[0].args)
    expect(started).toEqual([
      ['serve', '--role', 'api'],
      ['serve', '--role', 'ingest,replay,watch'],
    ])
    for (const { spec } of deployments) {
      const pod = spec.template.spec
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65_532 })
      expect(pod.automountServiceAccountToken).toBe(false)
      // Above `shutdown.grace` of the server.
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(25)
      for (const container of [...pod.containers, ...(pod.initContainers ?? [])]) {
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
      }
    }
  })

  test('passes secrets as files only', () => {
    const { objects } = render({})
    for (const { spec } of ofKind(objects, 'Deployment')) {
      expect(spec.template.spec.containers[0].env).toEqual([
        { name: 'DATABASE_URL_FILE', value: '/run/secrets/redrive/DATABASE_URL' },
        { name: 'OIDC_CLIENT_SECRET_FILE', value: '/run/secrets/redrive/OIDC_CLIENT_SECRET' },
      ])
    }
  })

  test('probes ports that the container has', () => {
    const { objects } = render({})
    for (const { spec } of ofKind(objects, 'Deployment')) {
      const {
        ports = [],
        livenessProbe,
        readinessProbe,
        startupProbe,
      } = spec.template.spec.containers[0]
      expect(ports.map(({ name }) => name)).toEqual(['http', 'metrics'])
      const probes = [livenessProbe, readinessProbe, startupProbe].map((probe) => probe?.httpGet)
      expect(probes).toEqual([
        { path: '/livez', port: 'http', scheme: 'HTTP' },
        { path: '/readyz', port: 'http', scheme: 'HTTP' },
        { path: '/livez', port: 'http', scheme: 'HTTP' },
      ])
    }
  })

  test('probes with https when the server has TLS, and mounts its certificate', () => {
    const volume = { name: 'tls', secret: { secretName: 'redrive-server-tls' } }
    const mount = { name: 'tls', mountPath: '/etc/redrive-tls', readOnly: true }
    const { objects, problem } = render({
      config: { tls: { cert: '/etc/redrive-tls/tls.crt', key: '/etc/redrive-tls/tls.key' } },
      extraVolumes: [volume],
      extraVolumeMounts: [mount],
    })
    expect(problem).toBe('')
    for (const { spec } of ofKind(objects, 'Deployment')) {
      const { containers, initContainers = [], volumes } = spec.template.spec
      const [{ livenessProbe, readinessProbe, startupProbe }] = containers
      const probes = [livenessProbe, readinessProbe, startupProbe]
      expect(probes.map((probe) => probe?.httpGet.scheme)).toEqual(['HTTPS', 'HTTPS', 'HTTPS'])
      expect(volumes).toContainEqual(volume)
      for (const { volumeMounts } of [...containers, ...initContainers]) {
        expect(volumeMounts).toContainEqual(mount)
      }
    }
  })

  test('selects pods that exist', () => {
    const config = { trustProxy: ['10.0.0.0/8'] }
    const { objects } = render({ ingress: { enabled: true }, config })
    const [service] = ofKind(objects, 'Service')
    expect(podsOf(objects, service?.spec.selector ?? {})).toEqual(['demo-redrive-api'])
    for (const { metadata, spec } of ofKind(objects, 'PodDisruptionBudget')) {
      expect(podsOf(objects, spec.selector.matchLabels)).toEqual([metadata.name])
      expect(spec.maxUnavailable).toBe(1)
    }
    const policies = ofKind(objects, 'NetworkPolicy')
    for (const { metadata, spec } of policies) {
      expect(podsOf(objects, spec.podSelector.matchLabels)).toEqual([metadata.name])
    }
    // Users reach the pods of the API, and no pod that uses brokers.
    expect(policies.map(({ spec }) => spec.ingress.length)).toEqual([1, 0])
  })

  test('scales workers by the dead letters that wait in the brokers', () => {
    const lag = { metric: 'redrive_broker_dead_letters', perReplica: 500 }
    const autoscaling = { enabled: true, minReplicas: 2, maxReplicas: 4, lag }
    const { objects } = render({ components: { worker: { autoscaling } } })
    const [scaler, ...others] = ofKind(objects, 'HorizontalPodAutoscaler')
    expect(others).toEqual([])
    expect(scaler?.spec.scaleTargetRef.name).toBe('demo-redrive-worker')
    expect(scaler?.spec.metrics).toEqual([
      {
        type: 'External',
        external: {
          metric: { name: 'redrive_broker_dead_letters' },
          target: { type: 'AverageValue', averageValue: '500' },
        },
      },
    ])
    // The autoscaler sets the number. A rollout must not reset it.
    const replicas = ofKind(objects, 'Deployment').map(({ spec }) => spec.replicas)
    expect(replicas).toEqual([2, undefined])
  })

  test('writes a config that the server accepts', async () => {
    const sources = { orders: { rabbitmq: { url: '${RABBITMQ_URL}', queue: 'orders' } } }
    const { objects } = render({ config: { sources } })
    const text = ofKind(objects, 'ConfigMap')[0]?.data['redrive.config.yaml'] ?? ''
    const file = join(folder, 'redrive.config.yaml')
    writeFileSync(file, text)
    const env = {
      DATABASE_URL: 'postgres://127.0.0.1/redrive',
      OIDC_CLIENT_SECRET: 'secret',
      RABBITMQ_URL: 'amqp://127.0.0.1',
    }
    const { config } = await loadConfig({ file, env })
    expect(Object.keys(config.sources)).toEqual(['orders'])
    expect(parse(text)).toMatchObject({
      listen: '0.0.0.0:8080',
      metrics: { listen: '0.0.0.0:9464' },
    })
  })

  test.each([
    [{ replica: 3 }, 'replica'],
    [{ config: { auth: { development: {} } } }, 'development'],
    [{ config: { listen: '127.0.0.1:8080' } }, 'listen'],
    [{ components: { api: { roles: ['apis'] } } }, 'roles'],
    [{ image: { digest: 'sha256:short' } }, 'digest'],
    [{ ingress: { enabled: true } }, 'set config.trustProxy'],
    [{ metrics: { podMonitor: true } }, 'set networkPolicy.metricsFrom'],
    [
      { components: { worker: { roles: ['ingest', 'replay'] } } },
      'No component has the role "watch"',
    ],
  ])('rejects %j', (values, named) => {
    const { problem, objects } = render(values)
    expect(problem).toContain(named)
    expect(objects).toEqual([])
  })
})
