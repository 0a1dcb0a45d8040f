/** Tests the sink on a real Loki: REDRIVE_LOKI is the path of its binary. */
import { startConfigured } from '@redrive/dev-support'
import { describe, expect, it } from 'vitest'
import { loki } from '../src/index.ts'
import { untilServed } from './served.ts'
import { event, failureOf, never } from './world.ts'

const binary = process.env['REDRIVE_LOKI']

const config = (port: number, folder: string) => `
auth_enabled: false
analytics:
  reporting_enabled: false
server:
  http_listen_address: 127.0.0.1
  http_listen_port: ${port}
  grpc_listen_address: 127.0.0.1
  grpc_listen_port: 0
  log_level: warn
common:
  instance_addr: 127.0.0.1
  path_prefix: ${folder}
  replication_factor: 1
  ring:
    kvstore:
      store: inmemory
  storage:
    filesystem:
      chunks_directory: ${folder}/chunks
      rules_directory: ${folder}/rules
ingester:
  lifecycler:
    min_ready_duration: 0s
schema_config:
  configs:
    - from: 2020-01-01
      store: tsdb
      object_store: filesystem
      schema: v13
      index:
        prefix: index_
        period: 24h
`

interface QueryResult {
  readonly data: {
    readonly result: readonly {
      readonly stream: Readonly<Record<string, string>>
      readonly values: readonly (readonly [string, string])[]
    }[]
  }
}

describe.skipIf(binary === undefined)('loki on a real Loki', () => {
  it('keeps each event once, with its metadata', { timeout: 120_000 }, async () => {
    const service = await startConfigured(binary ?? '', config, (path) => [`-config.file=${path}`])
    const url = `http://127.0.0.1:${service.port}`
    const sinks = [false, true].map((gzip) => loki({ url, gzip, labels: { app: 'shop' } }))
    const [plain, packed] = sinks
    const at = Date.now()
    try {
      if (plain === undefined || packed === undefined) throw new Error('no sinks')
      await untilServed('Loki is ready', service, async () => {
        await plain.healthCheck?.({ signal: never })
        return true
      })
      // Equal except for their ids; sent twice, and once more compressed.
      const events = ['a', 'b'].map((id) => event({ id, at, headers: { severity: 'error' } }))
      await plain.send(events, { signal: never })
      await plain.send(events, { signal: never })
      await packed.send([...events, event({ id: 'c', at: at - 5 })], { signal: never })
      const query = new URLSearchParams({
        query: '{app="shop"} | id=~".+"',
        start: `${at - 1_000}000000`,
      })
      const found = await untilServed('three lines', service, async () => {
        const response = await fetch(`${url}/loki/api/v1/query_range?${query.toString()}`)
        const { data } = (await response.json()) as QueryResult
        const lines = data.result.flatMap(({ stream, values }) =>
          values.map((value) => ({ stream, value })),
        )
        return lines.length >= 3 ? lines : undefined
      })
      expect(found).toHaveLength(3)
      expect(new Set(found.map(({ stream }) => stream['id']))).toEqual(new Set(['a', 'b', 'c']))
      const first = found.find(({ stream }) => stream['id'] === 'a')
      expect(first?.value).toEqual([`${at}000000`, '{"order":42}'])
      expect(first?.stream).toMatchObject({
        app: 'shop',
        key: 'order-42',
        type: 'order.placed',
        lane: 'customer-7',
        severity: 'error',
        detected_level: 'error',
      })
      const old = plain.send([event({ id: 'old', at: at - 30 * 86_400_000 })], { signal: never })
      expect(await failureOf(old)).toMatchObject({ class: 'integration', code: 'HTTP 400' })
    } finally {
      await Promise.all(sinks.map((sink) => sink.close()))
      await service.stop()
    }
  })
})
