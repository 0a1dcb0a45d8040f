import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { Agent, get, type RequestOptions } from 'node:https'
import { connect as connectTcp, createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { connect as connectTls, createServer as createTlsServer, type TLSSocket } from 'node:tls'
import { authority, freePort } from '@redrive/dev-support'
import { until } from '@redrive/testing'
import { afterAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { readConfig } from '../src/config/load.ts'
import { openSources } from '../src/composition.ts'
import { serve } from '../src/serve.ts'
import { createLog } from '../src/start/log.ts'
import { connectionOf, createPools } from '../src/start/pools.ts'
import { watchCertificate } from '../src/start/tls.ts'
import { rejection } from './database-stage.ts'
import { rabbitmqUrl, serveDatabase } from './serve-stage.ts'

const folder = await mkdtemp(join(tmpdir(), 'redrive-tls-'))
afterAll(() => rm(folder, { recursive: true }))
const [ours, theirs] = await Promise.all([authority(folder, 'ours'), authority(folder, 'theirs')])
const { url, base } = await serveDatabase('redrive_server_tls')

/** Writes files and returns their paths. */
async function written(name: string, files: Readonly<Record<string, string>>) {
  const paths: Record<string, string> = {}
  for (const [kind, content] of Object.entries(files)) {
    const path = join(folder, `${name}-${kind}.pem`)
    await writeFile(path, content)
    paths[kind] = path
  }
  return paths
}
const configOf = (changes: object) =>
  readConfig({ ...base, listen: '127.0.0.1:0', ...changes }, { env: {}, cwd: '.', from: 'test' })

function collectingLog() {
  const lines: string[] = []
  const log = createLog({ to: { write: (line: string) => void lines.push(line) } })
  return { log, output: () => lines.join('') }
}

describe('https', () => {
  interface Reply {
    readonly status: number | undefined
    readonly body: string
    readonly serial: string
  }
  async function fetched(at: string, options: RequestOptions = {}): Promise<Reply> {
    const request = get(at, { ca: ours.ca, ...options })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const { serialNumber: serial } = (response.socket as TLSSocket).getPeerCertificate()
    return { status: response.statusCode, body: await text(response), serial }
  }

  async function started(roles: readonly ('api' | 'watch')[] = ['api']) {
    const pair = await ours.issue('server', 'IP:127.0.0.1')
    const tls = await written('server', pair)
    const { log, output } = collectingLog()
    const listen = `127.0.0.1:${await freePort()}`
    const server = await serve(configOf({ tls, listen }), { roles, log })
    onTestFinished(async () => void (await server.stop()))
    return { server, tls, output }
  }

  test('serves the API and health checks with the certificate, and no plain http', async () => {
    const { server, output } = await started()
    expect(server.url).toMatch(/^https:\/\/127\.0\.0\.1:/)
    expect(await fetched(`${server.url}/livez`)).toMatchObject({ status: 200 })
    expect(await fetched(`${server.url}/api/v1/me`)).toMatchObject({ status: 200 })
    const unknown = await rejection(fetched(`${server.url}/livez`, { ca: theirs.ca }))
    expect(unknown.code).toBe('UNABLE_TO_VERIFY_LEAF_SIGNATURE')
    await rejection(fetch(server.url.replace('https:', 'http:')))
    expect(output()).toContain(`Listening on ${server.url}.`)
  })

  test('also in a process without the API', async () => {
    const { server } = await started(['watch'])
    expect(await fetched(`${server.url}/livez`)).toMatchObject({ status: 200 })
  })

  test('stops although a client has opened a connection without a request', async () => {
    const { server } = await started()
    const { hostname, port } = new URL(server.url)
    const idle = connectTls({ host: hostname, port: Number(port), ca: ours.ca })
    await once(idle, 'secureConnect')
    const closed = once(idle, 'close')
    idle.on('error', () => undefined)
    expect(await server.stop()).toMatchObject({ isClean: true })
    await closed
  })

  test('uses a changed certificate for new connections, and open ones continue', async () => {
    const { server, tls, output } = await started()
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const before = await fetched(`${server.url}/livez`, { agent })
    const renewed = await written('server', await ours.issue('renewed', 'IP:127.0.0.1'))
    expect(renewed).toEqual(tls)
    const isChanged = () => output().includes('The certificate has changed.')
    await until('the new certificate', isChanged, { timeout: '50s' })
    const after = await fetched(`${server.url}/livez`)
    expect(after).toMatchObject({ status: 200 })
    expect(after.serial).not.toBe(before.serial)
    expect((await fetched(`${server.url}/livez`, { agent })).serial).toBe(before.serial)
  })

  test('keeps the certificate while files are empty or do not belong together', async () => {
    const pair = await ours.issue('first', 'IP:127.0.0.1')
    const renewed = await ours.issue('second', 'IP:127.0.0.1')
    const files = await written('watched', pair)
    const tls = { cert: files['cert'] ?? '', key: files['key'] ?? '' }
    const used: string[] = []
    const { log, output } = collectingLog()
    const server = {
      setSecureContext: ({ cert }: { cert?: unknown }) => void used.push(String(cert)),
    }
    const watch = watchCertificate(server, tls, pair, { log, everyMs: 10 })
    onTestFinished(() => watch.stop())
    await writeFile(tls.cert, '')
    await until('the report of an empty file', () => output().includes('keeps the previous'))
    await writeFile(tls.cert, renewed.cert)
    await until('the report of another key', () => output().includes('mismatch'))
    expect(used).toEqual([])
    await writeFile(tls.key, renewed.key)
    await until('the new certificate', () => used.length > 0)
    expect(used).toEqual([renewed.cert])
  })

  test('is not started with files that cannot be used', async () => {
    const pair = await ours.issue('server', 'IP:127.0.0.1')
    const other = await ours.issue('other', 'IP:127.0.0.1')
    const wrong = await written('wrong', { cert: pair.cert, key: other.key })
    const failed = await rejection(serve(configOf({ tls: wrong }), { roles: ['api'] }))
    expect(failed.message).toContain('tls: cannot use the certificate and the key')
    const missing = { cert: '/missing.pem', key: '/missing.key' }
    expect(
      (await rejection(serve(configOf({ tls: missing }), { roles: ['api'] }))).message,
    ).toContain('tls.cert: cannot read the file (ENOENT)')
  })
})

/** Accepts TLS with a client certificate of our authority, and forwards to a plain server. */
async function tlsProxy(to: { host: string; port: number }, isPostgres: boolean): Promise<number> {
  const pair = await ours.issue('proxy', 'IP:127.0.0.1')
  const options = { ...pair, ca: ours.ca, requestCert: true, rejectUnauthorized: true }
  const secure = createTlsServer(options, (socket) => {
    const other = connectTcp(to)
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
  const server = isPostgres ? asking : secure
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  afterAll(() => void server.close())
  return (server.address() as AddressInfo).port
}

const addressOf = (at: string) => {
  const { hostname: host, port } = new URL(at)
  return { host, port: Number(port) }
}

describe('certificates of connections', () => {
  const client = ours.issue('client', 'DNS:client')
  const stranger = theirs.issue('stranger', 'DNS:stranger')

  test('to PostgreSQL: a private authority and a client certificate, by file', async () => {
    const port = await tlsProxy(addressOf(url), true)
    const through = new URL(url)
    through.port = String(port)
    const files = await written('database', { ca: ours.ca, ...(await client) })
    const config = configOf({ database: { url: through.href, tls: files } })
    const pools = createPools(config, createLog({ level: 'silent' }))
    onTestFinished(() => pools.close())
    const { rows } = await pools.own.query('select 1 as one')
    expect(rows).toEqual([{ one: 1 }])

    const connects = async (tls: object | true) => {
      const tried = createPools(
        configOf({ database: { url: through.href, tls } }),
        createLog({ level: 'silent' }),
      )
      onTestFinished(() => tried.close())
      return rejection(tried.own.query('select 1'))
    }
    // The authority of the server is unknown.
    expect((await connects(true)).code).toMatch(
      /^(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE)$/,
    )
    // The server does not accept the client.
    const wrong = await written('stranger', { ca: ours.ca, ...(await stranger) })
    expect((await connects(wrong)).message).toMatch(/terminated|reset|ended|closed/i)

    // The next connection reads the files again.
    expect(await written('database', await stranger)).toMatchObject({ cert: files['cert'] })
    expect((await rejection(pools.health.query('select 1'))).message).toMatch(
      /terminated|reset|ended|closed/i,
    )
  })

  test('to PostgreSQL continue with the previous content while a file is missing or empty', async () => {
    const port = await tlsProxy(addressOf(url), true)
    const through = new URL(url)
    through.port = String(port)
    const files = await written('vanishing', { ca: ours.ca, ...(await client) })
    const { log, output } = collectingLog()
    const config = configOf({ database: { url: through.href, tls: files, connections: 12 } })
    const pools = createPools(config, log)
    onTestFinished(() => pools.close())
    const connects = async () => {
      const connection = await pools.own.connect()
      onTestFinished(() => connection.release())
      return (await connection.query<{ one: number }>('select 1 as one')).rows
    }
    const reports = () =>
      output()
        .split('\n')
        .filter((line) => line.includes('previous content'))
    await connects()
    await rm(files['key'] ?? '')
    expect(await connects()).toEqual([{ one: 1 }])
    expect(await connects()).toEqual([{ one: 1 }])
    expect(reports()).toHaveLength(1)
    expect(reports()[0]).toContain('database.tls.key: cannot read the file (ENOENT)')
    await written('vanishing', { ca: '', key: (await client).key })
    expect(await connects()).toEqual([{ one: 1 }])
    expect(reports()).toHaveLength(2)
    expect(reports()[1]).toContain('database.tls.ca: the file has no text in PEM')
  })

  test('to PostgreSQL belong to a separate pool, also with a known URL', async () => {
    const other = new URL(url)
    other.searchParams.set('application_name', 'other')
    const { database } = configOf({ database: { url } })
    const { database: second } = configOf({ database: { url: other.href } })
    const pools = createPools(configOf({}), createLog({ level: 'silent' }))
    onTestFinished(() => pools.close())
    const at = (one: typeof database, tls?: boolean) =>
      pools.at({ url: one.url, tls, where: 'sources.orders.postgres.tls' })
    expect(at(database)).toBe(pools.own)
    expect(at(database, true)).not.toBe(pools.own)
    expect(at(database, true)).toBe(at(database, true))
    expect(at(database, true).options.ssl).toEqual({})
    expect(at(second)).toBe(at(second))
    expect(at(second, true)).not.toBe(at(second))
  })

  test('to PostgreSQL are not used with tls: false, whatever the environment contains', async () => {
    vi.stubEnv('PGSSLMODE', 'require')
    onTestFinished(() => void vi.unstubAllEnvs())
    const pools = createPools(
      configOf({ database: { url, tls: false } }),
      createLog({ level: 'silent' }),
    )
    onTestFinished(() => pools.close())
    expect((await pools.own.query('select 1 as one')).rows).toEqual([{ one: 1 }])
  })

  test('to RabbitMQ: a private authority and a client certificate, by file', async () => {
    const mq = await rabbitmqUrl()
    const port = await tlsProxy(addressOf(mq), false)
    const through = new URL(mq.replace('amqp:', 'amqps:'))
    through.port = String(port)
    const depthWith = async (tls: object) => {
      const rabbitmq = { url: through.href, queue: 'q', deadLetterQueues: ['missing'], tls }
      const config = configOf({ sources: { orders: { rabbitmq } } })
      const pools = createPools(config, createLog({ level: 'silent' }))
      const [source] = openSources(config, pools)
      onTestFinished(async () => {
        await source?.source.close()
        await pools.close()
      })
      return source?.source.queues?.()
    }
    const files = await written('rabbitmq', { ca: ours.ca, ...(await client) })
    expect(await depthWith(files)).toEqual([{ name: 'missing', depth: undefined }])
    const wrong = await written('rabbitmq-stranger', { ca: theirs.ca, ...(await client) })
    const failed = await rejection(depthWith(wrong))
    expect(failed).toMatchObject({ code: 'UNREACHABLE' })
    expect((failed.cause as { readonly code?: unknown }).code).toMatch(
      /^(SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE)$/,
    )
  })

  test('are checked with the config', async () => {
    const problems = (changes: object) => {
      try {
        configOf(changes)
        return ''
      } catch (error) {
        return (error as Error).message
      }
    }
    const tls = { ca: '/ca.pem' }
    expect(problems({ database: { url: `${url}?sslmode=require`, tls } })).toContain(
      'database.url: expected no "sslmode" in the URL, because it would replace tls',
    )
    const rabbitmq = { url: 'amqp://localhost', queue: 'q', tls }
    expect(problems({ sources: { orders: { rabbitmq } } })).toContain(
      'sources.orders.rabbitmq.url: expected amqps:// with tls',
    )
    expect(problems({ sources: { orders: { postgres: { queue: 'q', tls } } } })).toContain(
      'sources.orders.postgres.tls: expected url, too',
    )
    expect(problems({ database: { url, tls: { cert: '/cert.pem' } } })).toContain(
      'expected both cert and key, or neither',
    )
    const missing = configOf({ database: { url, tls: { ca: '/missing-ca.pem' } } })
    expect(() => connectionOf(missing)).toThrow('database.tls.ca: cannot read the file (ENOENT)')
  })
})
