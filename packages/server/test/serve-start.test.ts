import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { emptyDatabase } from '@redrive/dev-support'
import { describe, expect, test } from 'vitest'
import {
  forwarding,
  freePort,
  rabbitmqUrl,
  refused,
  ServerProcess,
  serveDatabase,
  serving,
} from './serve-stage.ts'

const mq = await rabbitmqUrl()
const { url, base: BASE } = await serveDatabase('redrive_server_start')

describe('a start', () => {
  test('is refused without authentication', async () => {
    const { auth: _, ...rest } = BASE
    const { code, said } = await refused(rest)
    expect(code).toBe(1)
    expect(said).toContain(
      '- auth: the server does not start without authentication. Say how people sign in (auth.oidc), or, to try it on this machine alone, auth.development.',
    )
  })

  test('is refused in development mode on an address that others can reach', async () => {
    const { code, said } = await refused({ ...BASE, listen: '0.0.0.0:0' })
    expect(code).toBe(1)
    expect(said).toContain('- listen: with auth.development everybody who can connect may do')
  })

  test('is refused when checkpoints of the audit cannot be kept, and then nothing goes on', async () => {
    const { privateKey } = generateKeyPairSync('ed25519', {
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    })
    const { code, said } = await refused({
      ...BASE,
      sources: { orders: { rabbitmq: { url: mq, queue: 'orders' } } },
      audit: { signingKey: privateKey, checkpointFile: '/' },
    })
    expect(code).toBe(1)
    expect(said).toContain('EISDIR')
  })

  test('is refused without migrations, unless it may make them', async () => {
    const empty = await emptyDatabase('redrive_server_serve_empty')
    const config = { ...BASE, database: { url: empty } }
    const { code, said } = await refused(config)
    expect(code).toBe(1)
    expect(said).toMatch(
      /^The database lacks \d+ migrations: redrive 0001-outbox, .*redrive_catalog 0001-tables, .*redrive_server 0001-tables.*\. Run `redrive migrate` once, or say migrate: true\.$/m,
    )
    const server = await serving({ ...config, migrate: true }, 'api')
    expect(server.output).toContain('Applied the migration redrive_server 0001-tables.')
    expect((await server.get('/readyz')).status).toBe(200)
  })

  test('waits for a database that does not answer, for so long and no longer', async () => {
    const away = { url: `postgres://redrive@127.0.0.1:${await freePort()}/x`, waitFor: '1s' }
    const { code, said } = await refused({ ...BASE, database: away })
    expect(code).toBe(1)
    expect(said).toMatch(
      /The database does not answer \(.*ECONNREFUSED.*\)\. Trying again, for another 1 s\./,
    )
    expect(said).toMatch(
      /^The database does not answer, or does not let us in: .*ECONNREFUSED.*\. Look at database\.url\.$/m,
    )
  })

  test('succeeds when the database comes while it waits', async () => {
    const there = new URL(url)
    const port = await freePort()
    const away = new URL(url)
    away.host = `127.0.0.1:${port}`
    const config = { ...BASE, database: { url: away.href, waitFor: '20s' } }
    const server = new ServerProcess(config, { port: await freePort(), roles: 'api' })
    await server.says('The database does not answer')
    const proxy = await forwarding(port, { host: there.hostname, port: Number(there.port) })
    await server.says('"msg":"Serving api."')
    expect((await server.get('/readyz')).status).toBe(200)
    await server.kill()
    proxy.close()
    await once(proxy, 'close')
  })

  test('does not wait when the database says no', async () => {
    const wrong = new URL(url)
    wrong.pathname = '/there_is_no_such_database'
    const { code, said } = await refused({ ...BASE, database: { url: wrong.href, waitFor: '1h' } })
    expect(code).toBe(1)
    expect(said).toContain(
      'database "there_is_no_such_database" does not exist. Look at database.url.',
    )
  })
})

describe('metrics', () => {
  test('are for callers that may view everything, where the API is', async () => {
    const oidc = { issuer: 'https://id.example', clientId: 'redrive' }
    const config = { ...BASE, auth: { oidc }, publicUrl: 'https://redrive.example' }
    const server = await serving(config, 'api')
    const response = await server.get('/metrics')
    expect(response.status).toBe(401)
    expect(await response.text()).toBe(
      'Show a token: `Authorization: Bearer rdv_…`, or say metrics.listen in the config.\n',
    )
  })
})
