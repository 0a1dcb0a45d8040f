import { randomUUID } from 'node:crypto'
import { type JetStreamManager, jetstreamManager, type StreamConfig } from '@nats-io/jetstream'
import { connect } from '@nats-io/transport-node'
import { services, urlOf } from '@redrive/dev-support'
import { nats } from '@redrive/nats'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { diagnose, exitCodeOf, findIn, gradeOf, NATS_CHECKS, readNats } from '../src/index.ts'
import { idsIn } from './ids.ts'

const url = await urlOf('nats')
const monitor = await services('do', 'nats', 'monitor')
const stream = `doctor-${randomUUID()}`
const own = ['retry', 'dlq'].map((end) => `${stream}-billing-${end}`)
const options = {
  servers: url,
  monitors: [monitor],
  sources: [{ stream, consumer: 'billing' }],
}
let manager: JetStreamManager
let close: () => Promise<void>

beforeAll(async () => {
  const connection = await connect({ servers: url })
  manager = await jetstreamManager(connection)
  const transport = nats({ servers: url, stream, consumer: 'billing', subjects: [`${stream}.>`] })
  await transport.open()
  await transport.close()
  close = async () => {
    for (const name of [stream, ...own]) await manager.streams.delete(name)
    await connection.close()
  }
})
afterAll(() => close())

/** Returns the additional findings with changed settings, which are reset afterwards. */
async function alsoWith(name: string, change: Partial<StreamConfig>): Promise<readonly string[]> {
  const { config } = await manager.streams.info(name)
  await manager.streams.update(name, change)
  const ids = idsIn(NATS_CHECKS, await readNats(options))
  await manager.streams.update(name, config)
  return ids.filter((id) => !OF_ONE_SERVER.includes(id))
}

/** Findings of every single server with default settings. */
const OF_ONE_SERVER = ['nats.replicas', 'nats.sync-interval']

describe('NATS JetStream, one server', () => {
  it('with default settings has one copy of each message, and confirms before fsync', async () => {
    const facts = await readNats(options)
    expect(idsIn(NATS_CHECKS, facts)).toEqual(OF_ONE_SERVER)
    expect(facts.servers).toMatchObject([{ intervalMs: 120_000 }])
    expect(gradeOf(findIn(NATS_CHECKS, facts)).grade).toBe('C')
  })

  it('reports streams that delete messages', async () => {
    expect(await alsoWith(stream, { max_msgs: 5, discard: 'old' })).toEqual(['nats.discard-old'])
    expect(await alsoWith(stream, { max_msgs_per_subject: 5 })).toEqual(['nats.discard-old'])
    expect(await alsoWith(stream, { max_age: 3_600e9, duplicate_window: 60e9 })).toEqual([
      'nats.source-age',
    ])
    expect(await alsoWith(`${stream}-billing-dlq`, { max_age: 1e15 })).toEqual(['nats.own-age'])
    expect(await alsoWith(`${stream}-billing-retry`, { max_msg_size: 100 })).toEqual([
      'nats.message-size',
    ])
  })

  it('finds the consumers of Redrive without a list', async () => {
    const { sources } = await readNats({ servers: url })
    expect(sources).toContainEqual({ stream, consumer: 'billing', prefix: `${stream}-billing` })
  })

  it('counts facts that it cannot read as losses', async () => {
    const silent = await diagnose({ nats: { ...options, monitors: [] } })
    const [{ findings } = { findings: [] }] = silent.brokers
    expect(findings[0]).toMatchObject({ check: 'nats.unreadable', subject: 'sync_interval' })
    expect(exitCodeOf(silent)).toBe(1)
    const wrong = await readNats({ ...options, monitors: [monitor.replace(/\d+$/, '25899')] })
    expect(idsIn(NATS_CHECKS, wrong)).toEqual(['nats.replicas', 'nats.unreadable'])
    const down = await readNats({ ...options, servers: 'nats://app:hidden@127.0.0.1:25899' })
    expect(idsIn(NATS_CHECKS, down)).toEqual(['nats.unreadable'])
    expect(JSON.stringify(down)).not.toContain('hidden')
  })

  it('reports a stream that does not exist', async () => {
    const sources = [{ stream, consumer: 'shipping' }]
    const findings = findIn(NATS_CHECKS, await readNats({ ...options, sources }))
    const missing = findings.filter(({ check }) => check === 'nats.stream-missing')
    expect(missing.map(({ subject }) => subject)).toEqual(
      ['retry', 'dlq'].map((end) => `${stream}-shipping-${end}`),
    )
  })
})
