import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { urlOf } from '@redrive/dev-support'
import { nats, natsSource, topologyOf } from '@redrive/nats'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { EXIT } from '../src/exit.ts'
import { run } from './world.ts'

const shell = promisify(execFile)
const url = await urlOf('nats')
const streams: string[] = []
let connection: NatsConnection

beforeAll(async () => {
  connection = await connect({ servers: url })
})
afterAll(async () => {
  const manager = await jetstreamManager(connection)
  for (const stream of streams) {
    const { retry, dead } = topologyOf(stream, 'billing')
    for (const name of [stream, retry.stream, dead.stream]) await manager.streams.delete(name)
  }
  await connection.close()
})

/** Returns the flags for a stream that does not exist yet. */
function newStream(): { readonly stream: string; readonly flags: readonly string[] } {
  const stream = `plan-${randomUUID()}`
  streams.push(stream)
  const flags = ['--stream', stream, '--consumer', 'billing', '--subject', `${stream}.>`]
  return { stream, flags }
}

/** Starts and stops a consumer and a control plane that create nothing: they reject when something is missing. */
async function verify(stream: string): Promise<void> {
  const options = { servers: url, stream, consumer: 'billing', topology: 'verify' } as const
  const transport = nats(options)
  const source = natsSource(options)
  try {
    await transport.open()
    expect(await source.depth()).toBe(0)
  } finally {
    await transport.close()
    await source.close()
  }
}

test('the printed commands create everything that a consumer and its control plane need', async () => {
  const { stream, flags } = newStream()
  await expect(verify(stream)).rejects.toMatchObject({ code: 'TOPOLOGY_MISMATCH' })
  const { code, stdout } = await run(['topology', 'plan', 'nats://nowhere', ...flags])
  expect(code).toBe(EXIT.ok)
  // The command line of NATS sends a body to a subject, as this function does.
  const printing = `nats() { printf '%s\\0' "$2" "$3"; }\n${stdout}`
  const printed = await shell('bash', ['-euc', printing])
  const words = printed.stdout.split('\0').slice(0, -1)
  expect(words).toHaveLength(2 * 7)
  for (let at = 0; at < words.length; at += 2) {
    const answer = await connection.request(words[at] ?? '', words[at + 1])
    expect(answer.json()).not.toHaveProperty('error')
  }
  await expect(verify(stream)).resolves.toBeUndefined()
})

test('apply creates the same, and changes nothing when it exists', async () => {
  const { stream, flags } = newStream()
  const first = await run(['topology', 'apply', url, ...flags])
  expect(first.stdout).toContain(`created  stream ${stream}-billing-retry\n`)
  expect(first.stdout).toContain(`created  consumer ${stream}-billing-dlq > dead-letters\n`)
  await expect(verify(stream)).resolves.toBeUndefined()
  const second = await run(['topology', 'apply', url, ...flags])
  expect(second.stdout.split('\n').filter((line) => line.startsWith('exists '))).toHaveLength(7)
  expect(second.stdout).not.toContain('created')
})

test('the flags of the other broker are reported', async () => {
  const missing = await run(['topology', 'plan', url, '--queue', 'orders'])
  expect(missing.stderr).toContain('NATS needs --stream and --consumer')
  const queue = await run(['topology', 'plan', 'amqp://localhost', '--stream', 'ORDERS'])
  expect(queue.stderr).toContain('RabbitMQ needs --queue')
  expect([missing.code, queue.code]).toEqual([EXIT.usage, EXIT.usage])
})
