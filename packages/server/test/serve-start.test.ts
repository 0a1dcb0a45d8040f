import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { emptyDatabase, freePort } from '@redrive/dev-support'
import { describe, expect, test } from 'vitest'
import {
  failedStart,
  forwarding,
  rabbitmqUrl,
  ServerProcess,
  serveDatabase,
  serving,
} from './serve-stage.ts'

const mq = await rabbitmqUrl()
const { url, base: BASE } = await serveDatabase('redrive_server_start')

describe('the start', () => {
  test('fails without authentication', async () => {
    const { auth: _, ...rest } = BASE
    const { code, output } = await failedStart(rest)
    expect(code).toBe(1)
    expect(output).toContain(
      '- auth: the server does not start without authentication. Set auth.oidc, or auth.development to try the server on this machine only.',
    )
  })

  test('fails in development mode on an address that is not loopback', async () => {
    const { code, output } = await failedStart({ ...BASE, listen: '0.0.0.0:0' })
    expect(code).toBe(1)
    expect(output).toContain('- listen: auth.development gives every client full access')
  })

  test('fails when the checkpoint file cannot be written, and leaves nothing running', async () => {
    const { privateKey } = generateKeyPairSync('ed25519', {
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    })
    const { code, output } = await failedStart({
      ...BASE,
      sources: { orders: { rabbitmq: { url: mq, queue: 'orders' } } },
      audit: { signingKey: privateKey, checkpointFile: '/' },
    })
    expect(code).toBe(1)
    expect(output).toContain('EISDIR')
  })

  test('fails without migrations, unless migrate is true', async () => {
    const empty = await emptyDatabase('redrive_server_serve_empty')
    const config = { ...BASE, database: { url: empty } }
    const { code, output } = await failedStart(config)
    expect(code).toBe(1)
    expect(output).toMatch(
      /^The database is not up to date\. Missing migrations: redrive 0001-outbox, .*redrive_catalog 0001-tables, .*redrive_server 0001-tables.*\. Run `redrive migrate`, or set migrate: true\.$/m,
    )
    const server = await serving({ ...config, migrate: true }, 'api')
    expect(server.output).toContain(String.raw`Applied migration \"redrive_server 0001-tables\".`)
    expect((await server.get('/readyz')).status).toBe(200)
  })

  test('waits for the database until waitFor', async () => {
    const away = { url: `postgres://redrive@127.0.0.1:${await freePort()}/x`, startupTimeout: '1s' }
    const { code, output } = await failedStart({ ...BASE, database: away })
    expect(code).toBe(1)
    expect(output).toMatch(
      /Cannot connect to the database \(.*ECONNREFUSED.*\)\. Retrying for another 1 s\./,
    )
    expect(output).toMatch(
      /^Cannot connect to the database: .*ECONNREFUSED.*\. Check database\.url\.$/m,
    )
  })

  test('succeeds when the database becomes reachable in time', async () => {
    const target = new URL(url)
    const port = await freePort()
    const away = new URL(url)
    away.host = `127.0.0.1:${port}`
    const config = { ...BASE, database: { url: away.href, startupTimeout: '20s' } }
    const server = new ServerProcess(config, { port: await freePort(), roles: 'api' })
    await server.waitForOutput('Cannot connect to the database')
    const proxy = await forwarding(port, { host: target.hostname, port: Number(target.port) })
    await server.waitForOutput('"msg":"Serving api."')
    expect((await server.get('/readyz')).status).toBe(200)
    await server.kill()
    proxy.close()
    await once(proxy, 'close')
  })

  test('does not wait when the database rejects the connection', async () => {
    const wrong = new URL(url)
    wrong.pathname = '/there_is_no_such_database'
    const { code, output } = await failedStart({
      ...BASE,
      database: { url: wrong.href, startupTimeout: '1h' },
    })
    expect(code).toBe(1)
    expect(output).toContain(
      'database "there_is_no_such_database" does not exist. Check database.url.',
    )
  })
})

describe('metrics', () => {
  test('on the address of the API require permission on all sources', async () => {
    const oidc = { issuer: 'https://id.example', clientId: 'redrive' }
    const approval = 'another_person'
    const config = { ...BASE, auth: { oidc }, approval, publicUrl: 'https://redrive.example' }
    const server = await serving(config, 'api')
    const response = await server.get('/metrics')
    expect(response.status).toBe(401)
    expect(await response.text()).toBe(
      'Send a token: `Authorization: Bearer rdv_…`, or set metrics.listen in the config.\n',
    )
  })
})
