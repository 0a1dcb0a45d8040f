import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createServer as createTlsServer } from 'node:tls'
import { authority, dropDatabase, emptyDatabase, poolOn, urlOf } from '@redrive/dev-support'
import { migrate } from '@redrive/postgres'
import { connect } from 'amqplib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { run } from './world.ts'

const folder = mkdtempSync(join(tmpdir(), 'redrive-cli-tls-'))
const ours = await authority(folder, 'ours')
const queue = `cli-tls-${process.pid}`
const ends: (() => unknown)[] = [() => rmSync(folder, { recursive: true, force: true })]
afterAll(async () => {
  for (const end of ends.toReversed()) await end()
})

const written = (name: string, text: string) => {
  const file = join(folder, name)
  writeFileSync(file, text)
  return file
}

const client = await ours.issue('client', 'DNS:client')
const ca = ['--ca', written('ca.pem', ours.ca)]
const files = [
  ...ca,
  ...['--cert', written('client.pem', client.cert), '--key', written('client.key', client.key)],
]

/** Accepts TLS with a client certificate of our authority, and forwards to the plain server at the address. */
async function secured(plain: string): Promise<string> {
  const { hostname: host, port } = new URL(plain)
  const pair = await ours.issue('proxy', 'IP:127.0.0.1')
  const options = { ...pair, ca: ours.ca, requestCert: true, rejectUnauthorized: true }
  const secure = createTlsServer(options, (socket) => {
    const other = connectTcp({ host, port: Number(port) })
    for (const one of [socket, other]) one.on('error', () => undefined)
    socket.pipe(other).pipe(socket)
  })
  // The client of PostgreSQL first requests TLS, in plain text.
  const asking = createServer((raw) => {
    raw.on('error', () => undefined)
    raw.once('data', () => {
      raw.write('S')
      secure.emit('connection', raw)
    })
  })
  const server = plain.startsWith('postgres') ? asking : secure
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  ends.push(() => server.close())
  const address = new URL(plain)
  const { port: own } = server.address() as AddressInfo
  address.host = `127.0.0.1:${own}`
  return address.href.replace(/^(amqp|http):/, '$1s:')
}

let [amqp, management, postgres] = ['', '', '']
beforeAll(async () => {
  const broker = await urlOf('rabbitmq', 'amqp')
  amqp = await secured(broker)
  management = await secured(await urlOf('rabbitmq', 'http'))
  const database = await emptyDatabase(`redrive_cli_tls_${process.pid}`)
  const pool = poolOn(database)
  await migrate(pool)
  await pool.end()
  ends.push(() => dropDatabase(database))
  postgres = await secured(database)
  const model = await connect(broker)
  const channel = await model.createConfirmChannel()
  await channel.assertQueue(queue)
  channel.sendToQueue(queue, Buffer.from('a'), { messageId: 'm-1' })
  await channel.waitForConfirms()
  ends.push(async () => {
    await channel.deleteQueue(queue)
    await model.close()
  })
}, 120_000)

const real = { isRealTime: true }

describe('with a private authority and a client certificate', () => {
  test('peek reads RabbitMQ', async () => {
    const { code, stdout, stderr } = await run(['peek', amqp, queue, '--json', ...files], real)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(JSON.parse(stdout)).toMatchObject({ total: 1, messages: [{ id: 'm-1' }] })
  })

  test('peek reads PostgreSQL', async () => {
    const { code, stdout } = await run(['peek', postgres, 'events', ...files], real)
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'The queue is empty.\n' })
  })

  test.each([
    ['RabbitMQ by AMQP', () => amqp],
    ['the management API of RabbitMQ', () => `${management}?vhost=/`],
    ['PostgreSQL', () => postgres],
  ])('doctor reads %s', async (_, address) => {
    const { stdout } = await run(['doctor', address(), '--json', ...files], real)
    const { brokers } = JSON.parse(stdout) as {
      readonly brokers: readonly { readonly findings: readonly { readonly subject: string }[] }[]
    }
    const subjects = brokers[0]?.findings.map(({ subject }) => subject)
    expect(subjects).toBeDefined()
    for (const unread of ['version', 'management API', 'server']) {
      expect(subjects).not.toContain(unread)
    }
  })

  test('doctor uses them for every address: the driver of PostgreSQL hides the key in its options', async () => {
    const addresses = [postgres, `${management}?vhost=/`]
    const { stdout } = await run(['doctor', ...addresses, '--json', ...files], real)
    expect(stdout).not.toContain('--cert FILE')
    expect(JSON.parse(stdout)).toMatchObject({ brokers: [{}, {}] })
  })

  test('doctor uses the certificates of the config', async () => {
    const tls = { ca: files[1], cert: files[3], key: files[5] }
    const config = {
      database: { url: postgres, tls },
      auth: { development: {} },
      sources: { orders: { rabbitmq: { url: amqp, queue, tls } } },
    }
    const file = written('redrive.config.json', JSON.stringify(config))
    const { stdout } = await run(['doctor', '--config', file, '--json'], real)
    const { brokers } = JSON.parse(stdout) as {
      readonly brokers: readonly { readonly findings: readonly { readonly found: string }[] }[]
    }
    const unread = brokers
      .flatMap(({ findings }) => findings)
      .map(({ found }) => found)
      .filter((found) => found.startsWith('not readable'))
    expect(brokers).toHaveLength(2)
    expect(unread).toEqual([
      'not readable: AMQP cannot read them, and no management API is configured',
    ])
  })
})

describe('a rejected certificate', () => {
  test.each([
    ['amqps', () => amqp],
    ['postgres', () => `${postgres}?sslmode=verify-full`],
  ])('of %s is reported by peek with what to do', async (_, address) => {
    const { code, stderr } = await run(['peek', address(), queue], real)
    expect(code).toBe(1)
    expect(stderr).toContain('--ca FILE')
  })

  test('of a broker is reported by doctor with what to do', async () => {
    for (const address of [amqp, management]) {
      const { stdout } = await run(['doctor', address], real)
      expect(stdout).toContain('--ca FILE')
      expect(stdout).not.toContain('guest:guest')
    }
  })

  test('of the client is reported with what to do', async () => {
    const { stdout } = await run(['doctor', management, ...ca], real)
    expect(stdout).toContain('--cert FILE --key FILE')
  })

  test.each([
    [['amqp://localhost', 'q', ...ca], 'Expected an address with amqps://'],
    [['amqps://localhost', 'q', '--cert', 'a.pem'], 'both --cert and --key'],
    [['postgres://h/d?sslmode=no-verify', 'q', ...ca], 'Expected no "sslmode" in the address'],
    [['amqps://localhost', 'q', '--ca', '/none.pem'], '--ca: cannot read the file "/none.pem"'],
    [['amqps://localhost', 'q', '--ca', import.meta.filename], 'no text in PEM'],
  ])('%j is a wrong use', async (args, message) => {
    const { code, stderr } = await run(['peek', ...args])
    expect(code).toBe(2)
    expect(stderr).toContain(message)
  })
})
