import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { isRedriveError } from '@redrive/core'
import { fastify } from 'fastify'
import { afterAll, describe, expect, test } from 'vitest'
import { readConfig } from '../src/config/load.ts'
import { defineConfig, loadConfig } from '../src/index.ts'
import { configJsonSchema } from '../src/config/schema.ts'
import { rejection } from './database-stage.ts'

const folder = mkdtempSync(join(tmpdir(), 'redrive-config-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let folders = 0

/** Creates a working directory with these files. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const created = mkdtempSync(join(folder, `${folders++}-`))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(created, name), content)
  return created
}

const SMALLEST = {
  database: { url: 'postgres://redrive:hunter2@db.example/redrive' },
  auth: { development: {} },
  sources: { orders: { rabbitmq: { url: 'amqp://app:hunter2@mq.example', queue: 'orders' } } },
}
const YAML = `
database: { url: postgres://redrive:hunter2@db.example/redrive }
auth: { development: {} }
sources: { orders: { rabbitmq: { url: amqp://app:hunter2@mq.example, queue: orders } } }
`

const read = (raw: unknown, env: Readonly<Record<string, string>> = {}, cwd = folder) =>
  readConfig(raw, { env, cwd, from: 'redrive.config.yaml' })

function problemsOf(raw: unknown, env: Readonly<Record<string, string>> = {}): readonly string[] {
  try {
    read(raw, env)
  } catch (error) {
    if (isRedriveError(error, 'POLICY_INVALID')) return error.problems ?? [error.message]
    throw error
  }
  return []
}

describe('channels of alerts', () => {
  const withAlerts = (alerts: object) => ({ ...SMALLEST, alerts })

  test('may use valid private targets only, like the export of the audit log', () => {
    const networks = ['10.0.0.0/99', '300.1.2.3', 'hooks internal']
    const expected = "expected addresses, ranges such as '10.0.0.0/8', or host names"
    for (const one of networks) {
      expect(problemsOf(withAlerts({ allowPrivate: [one] }))).toEqual([
        `alerts.allowPrivate: ${expected}`,
      ])
    }
    expect(problemsOf(withAlerts({ allowPrivate: '10.0.0.0/8, hooks.internal, ::1' }))).toEqual([])
    const webhook = { url: 'https://siem.test', secret: `whsec_${'A'.repeat(32)}` }
    const audit = { export: { webhook: { ...webhook, allowPrivate: networks } } }
    expect(problemsOf({ ...SMALLEST, audit })).toEqual([
      `audit.export.webhook.allowPrivate: ${expected}`,
    ])
  })

  test('send a DSN over http only if this is allowed', () => {
    const dsn = 'http://hunter2@sentry.internal/2'
    const problems = problemsOf(withAlerts({ sentry: [{ dsn }] }))
    expect(problems).toEqual([
      'alerts.sentry.0.dsn: expected a URL that begins with https://, or allowHttp: true',
    ])
    expect(problemsOf(withAlerts({ sentry: [{ dsn, allowHttp: true }] }))).toEqual([])
  })
})

describe('placeholders', () => {
  const withUrl = (url: string) => ({ ...SMALLEST, database: { url } })
  const urlOf = (raw: unknown, env: Readonly<Record<string, string>>, cwd?: string) =>
    read(raw, env, cwd).database.url.reveal()

  test('replace every occurrence of a variable in a text', () => {
    const raw = withUrl('postgres://${USER}:${PASSWORD}@db.example/${USER}')
    expect(urlOf(raw, { USER: 'ada', PASSWORD: 'p' })).toBe('postgres://ada:p@db.example/ada')
  })

  test('use the content of the file in NAME_FILE, without the final line break', () => {
    const cwd = folderWith({ secret: 'postgres://from-a-file/db\n' })
    expect(urlOf(withUrl('${URL}'), { URL_FILE: 'secret' }, cwd)).toBe('postgres://from-a-file/db')
  })

  test('prefer the variable to the file, unless the variable is empty', () => {
    const cwd = folderWith({ secret: 'postgres://file/db' })
    const files = { URL_FILE: 'secret' }
    expect(urlOf(withUrl('${URL}'), { ...files, URL: 'postgres://env/db' }, cwd)).toBe(
      'postgres://env/db',
    )
    expect(urlOf(withUrl('${URL}'), { ...files, URL: '' }, cwd)).toBe('postgres://file/db')
  })

  test('use the default when the variable is not set', () => {
    const raw = withUrl('postgres://${HOST:-localhost}/db')
    expect(urlOf(raw, {})).toBe('postgres://localhost/db')
    expect(urlOf(raw, { HOST: 'there' })).toBe('postgres://there/db')
  })

  test('without a value are reported with both ways to set it', () => {
    expect(problemsOf(withUrl('${DATABASE_URL}'))).toEqual([
      'database.url: the placeholder ${DATABASE_URL} has no value. Set DATABASE_URL, or set DATABASE_URL_FILE to the path of a file with the value.',
    ])
  })

  test('with an unreadable file are reported, even if they have a default', () => {
    expect(problemsOf(withUrl('${URL:-postgres://x/y}'), { URL_FILE: '/nowhere' })).toEqual([
      'database.url: cannot read the file "/nowhere" of URL_FILE (ENOENT).',
    ])
  })

  test('can contain numbers, booleans and lists', () => {
    const raw = {
      ...SMALLEST,
      database: { ...SMALLEST.database, connections: '${N}' },
      migrate: '${MIGRATE}',
      sources: { clicks: { kafka: { brokers: '${BROKERS}', topic: 'clicks', group: 'web' } } },
    }
    const config = read(raw, { N: '30', MIGRATE: 'true', BROKERS: 'a:9092, b:9092' })
    expect(config.database.connections).toBe(30)
    expect(config.migrate).toBe(true)
    expect(config.sources['clicks']?.kafka?.brokers).toEqual(['a:9092', 'b:9092'])
  })

  test('are escaped with two dollar signs', () => {
    expect(urlOf(withUrl('postgres://u:$${x}@h/db'), {})).toBe('postgres://u:${x}@h/db')
  })
})

describe('the config', () => {
  test('is rejected with a list of every problem and its position', () => {
    const raw = {
      database: { url: 'mysql://x', connections: 5 },
      listen: '8080',
      access: [{ roles: ['king'], sources: ['*'] }],
      sources: {
        orders: { rabbitmq: { url: '${RABBIT}', que: 'orders' } },
        clicks: {
          rabbitmq: { url: 'amqp://x', queue: 'q' },
          kafka: { brokers: 'a:1', topic: 't', group: 'g' },
        },
        nothing: {},
      },
      shutdown: { grace: '2w' },
      colour: 'red',
    }
    expect(problemsOf(raw)).toEqual([
      'sources.orders.rabbitmq.url: the placeholder ${RABBIT} has no value. Set RABBIT, or set RABBIT_FILE to the path of a file with the value.',
      'database.url: expected a URL that begins with postgres:// or postgresql://',
      'database.connections: expected a whole number from 12 to 1000',
      "listen: expected an address and a port, such as '127.0.0.1:8080'",
      'auth: the server does not start without authentication. Set auth.oidc, or auth.development to try the server on this machine only.',
      'access.0.roles.0: expected one or more of viewer, operator, approver, admin',
      'sources.orders.rabbitmq.queue: expected text, got nothing',
      'sources.orders.rabbitmq.que: unknown setting. To list all settings: redrive config schema',
      'sources.clicks: expected exactly one of rabbitmq, kafka, nats, postgres, redis, bullmq, sqs, fileStore, redisStore, postgresStore',
      'sources.nothing: expected exactly one of rabbitmq, kafka, nats, postgres, redis, bullmq, sqs, fileStore, redisStore, postgresStore',
      "shutdown.grace: expected a duration from '1s' to '1h'",
      'colour: unknown setting. To list all settings: redrive config schema',
    ])
  })

  test('rejects fingerprint rules without conditions, with an unknown source or with a used name', () => {
    const match = { text: 'declined' }
    const fingerprints = [
      { name: 'a', match: {}, group: 'x' },
      { name: 'b', match: { text: '*' }, group: 'x' },
      { name: 'c', match: { regex: 'a' }, group: 'x' },
      { name: 'd', match, group: 'x' },
      { name: 'd', match, group: 'x' },
    ]
    expect(problemsOf({ ...SMALLEST, fingerprints })).toEqual([
      'fingerprints.0.match: expected at least one of class, code, type, errorType, handler, text',
      'fingerprints.1.match.text: expected a character other than *, because * alone matches everything',
      'fingerprints.2.match.regex: unknown setting. To list all settings: redrive config schema',
      'fingerprints.2.match: expected at least one of class, code, type, errorType, handler, text',
      'fingerprints.4.name: expected a name that no other rule has, got "d" again',
    ])
    const lost = [{ name: 'a', source: 'order', match, group: 'x' }]
    expect(problemsOf({ ...SMALLEST, fingerprints: lost })).toEqual([
      'fingerprints.0.source: no source has the name "order"',
    ])
  })

  test.each([
    [['10.0.0.1', '10.0.0.0/8', 'fd00::/8', '::1', 'loopback', 'linklocal', 'uniquelocal']],
    ['10.0.0.1, 192.168.0.0/16'],
  ])('accepts the same addresses and networks of proxies as Fastify: %j', (trustProxy) => {
    expect(problemsOf({ ...SMALLEST, trustProxy })).toEqual([])
    expect(() => fastify({ trustProxy })).not.toThrow()
  })

  test.each([
    'lb.internal',
    '10.0.0.1,lb.internal',
    '10.0.0.0/33',
    '10.0.0.0/0',
    'fd00::/129',
    '10.0.0.0/',
    '1e3/8',
  ])('rejects host names and invalid networks of proxies: %s', (trustProxy) => {
    expect(problemsOf({ ...SMALLEST, trustProxy })).toEqual([
      "trustProxy: expected a list of addresses, networks such as '10.0.0.0/8', or names from loopback, linklocal, uniquelocal",
    ])
  })

  test('is rejected with settings that ingest would reject', () => {
    const names = Array.from({ length: 9 }, (_, at): [string, string] => [`name${at}`, '/id'])
    const orders = {
      ...SMALLEST.sources.orders,
      mask: ['/card/number', 'card'],
      extract: { order: 'id' },
    }
    const sources = { orders, clicks: { ...orders, mask: [], extract: Object.fromEntries(names) } }
    expect(problemsOf({ ...SMALLEST, sources })).toEqual([
      "sources.orders.mask.1: expected a JSON Pointer such as '/card/number'",
      "sources.orders.extract.order: expected a JSON Pointer such as '/card/number'",
      'sources.clicks.extract: expected at most 8 names of 1 to 64 characters',
    ])
  })

  test.each([{}, { auth: undefined }, { auth: {} }])(
    'is rejected without authentication: %o',
    (auth) => {
      const { auth: _, ...rest } = SMALLEST
      expect(problemsOf({ ...rest, ...auth })).toEqual([
        'auth: the server does not start without authentication. Set auth.oidc, or auth.development to try the server on this machine only.',
      ])
    },
  )

  test.each(['0.0.0.0:8080', '[::]:8080', '192.168.1.4:8080', 'redrive.example:8080'])(
    'with auth.development is rejected for the address %s',
    (listen) => {
      expect(problemsOf({ ...SMALLEST, listen })).toEqual([
        `listen: auth.development gives every client full access, so listen must be a loopback address such as "127.0.0.1:8080", got "${listen}". Change listen, or use auth.oidc.`,
      ])
    },
  )

  test.each(['127.0.0.1:8080', '127.0.0.2:1', '[::1]:8080', 'localhost:0'])(
    'with auth.development is accepted for the address %s',
    (listen) => expect(problemsOf({ ...SMALLEST, listen })).toEqual([]),
  )

  test('with auth.oidc requires a publicUrl with https', () => {
    const auth = { oidc: { issuer: 'https://id.example', clientId: 'redrive' } }
    expect(problemsOf({ ...SMALLEST, auth })).toEqual([
      'publicUrl: is required with auth.oidc, because the provider redirects the browser to it',
    ])
    expect(problemsOf({ ...SMALLEST, auth, publicUrl: 'http://redrive.example' })).toEqual([
      'publicUrl: expected https:// unless the host is this machine: session cookies require it',
    ])
    expect(problemsOf({ ...SMALLEST, auth, publicUrl: 'https://redrive.example' })).toEqual([])
  })

  test('with auth.oidc requires a confirmation of approval: anyone', () => {
    const auth = { oidc: { issuer: 'https://id.example', clientId: 'redrive' } }
    const alone = { ...SMALLEST, publicUrl: 'https://redrive.example', approval: 'anyone' }
    expect(problemsOf({ ...alone, auth })).toEqual([
      'approval: with "anyone", one person can plan and approve a replay alone. Remove it, or confirm it with allowOwnApproval: true',
    ])
    expect(problemsOf({ ...alone, auth, allowOwnApproval: true })).toEqual([])
    expect(problemsOf({ ...SMALLEST, approval: 'anyone' })).toEqual([])
  })

  test('is rejected with both auth.oidc and auth.development', () => {
    const auth = { oidc: { issuer: 'https://id.example', clientId: 'redrive' }, development: {} }
    expect(problemsOf({ ...SMALLEST, auth })).toEqual([
      'auth: expected exactly one of oidc, development',
    ])
  })

  test('is rejected when metrics.listen and listen are the same address', () => {
    const metrics = { listen: '127.0.0.1:8080' }
    expect(problemsOf({ ...SMALLEST, metrics })).toEqual([
      'metrics.listen: expected an address other than listen, because metrics need no authentication there',
    ])
  })

  test('is rejected with invalid encryption keys', () => {
    const encryptionKeys = { current: 'b', all: { a: 'c2hvcnQ=' } }
    expect(problemsOf({ ...SMALLEST, encryptionKeys })).toEqual([
      'encryptionKeys.current: expected the name of a key in encryptionKeys.all',
      'encryptionKeys.all.a: expected 32 bytes as base64',
    ])
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const signingKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    const audit = { signingKey, checkpointFile: 'audit.jsonl' }
    expect(problemsOf({ ...SMALLEST, audit })).toEqual([
      'audit.signingKey: expected an Ed25519 private key as PEM. Create one: openssl genpkey -algorithm ed25519',
    ])
  })

  test('does not contain secrets when it is printed or serialized', () => {
    const raw = {
      ...SMALLEST,
      sources: {
        clicks: {
          kafka: {
            brokers: ['a:9092'],
            topic: 'clicks',
            group: 'web',
            sasl: { mechanism: 'PLAIN', username: 'app', password: 'hunter2' },
          },
          replay: { health: 'https://shop.example/health/hunter2?key=hunter2' },
        },
        orders: { rabbitmq: { url: ['amqp://app:hunter2@mq.example/v'], queue: 'orders' } },
      },
      encryptionKeys: { current: 'a', all: { a: Buffer.alloc(32, 'hunter2').toString('base64') } },
      alerts: {
        webhooks: [
          {
            url: 'https://chat.example/hunter2',
            secret: `whsec_${Buffer.alloc(32, 'hunter2').toString('base64')}`,
          },
        ],
      },
    }
    const config = read(raw)
    const printed = [
      JSON.stringify(config),
      inspect(config, { depth: 20, showHidden: true, getters: true }),
      String(config.database.url),
    ].join()
    expect(printed).not.toMatch(/hunter2|aHVudGVy/)
    expect(String(config.database.url)).toBe('postgres://***@db.example/redrive')
    expect(String(config.alerts.webhooks[0]?.url)).toBe('https://chat.example/***')
    expect(JSON.stringify(config)).toContain('amqp://***@mq.example/v')
  })
})

describe('the config file', () => {
  const load = (cwd: string, env = {}, file?: string) =>
    loadConfig({ cwd, env, ...(file === undefined ? {} : { file }) })

  test.each([
    ['redrive.config.yaml', YAML],
    ['redrive.config.yml', YAML],
    ['redrive.config.json', JSON.stringify(SMALLEST)],
    ['redrive.config.js', `export default ${JSON.stringify(SMALLEST)}`],
    [
      'redrive.config.ts',
      `interface Settings { readonly [name: string]: unknown }\nconst config: Settings = ${JSON.stringify(SMALLEST)}\nexport default config`,
    ],
  ])('can be %s', async (name, content) => {
    const cwd = folderWith({ [name]: content })
    const { config, file } = await load(cwd)
    expect(file).toBe(join(cwd, name))
    expect(config.sources['orders']?.rabbitmq?.queue).toBe('orders')
  })

  test('is chosen by the option, then by REDRIVE_CONFIG', async () => {
    const cwd = folderWith({ 'a.yaml': YAML, 'b.yaml': YAML })
    expect((await load(cwd, { REDRIVE_CONFIG: 'a.yaml' })).file).toBe(join(cwd, 'a.yaml'))
    expect((await load(cwd, { REDRIVE_CONFIG: 'a.yaml' }, 'b.yaml')).file).toBe(join(cwd, 'b.yaml'))
  })

  test('is reported as missing with what to do', async () => {
    const cwd = folderWith({})
    expect((await rejection(load(cwd))).message).toBe(
      `No config file in "${cwd}": expected one of redrive.config.yaml, redrive.config.yml, redrive.config.json, redrive.config.ts, redrive.config.js. Run \`redrive init\` to create one, or set --config or REDRIVE_CONFIG.`,
    )
    expect((await rejection(load(cwd, {}, 'x.yaml'))).message).toBe(
      `Config file "${join(cwd, 'x.yaml')}" does not exist. Check --config and REDRIVE_CONFIG.`,
    )
  })

  test('is rejected when the folder contains two', async () => {
    const cwd = folderWith({ 'redrive.config.yaml': YAML, 'redrive.config.json': '{}' })
    expect((await rejection(load(cwd))).message).toBe(
      `Found 2 config files in "${cwd}": redrive.config.yaml, redrive.config.json. Keep one, or choose one with --config.`,
    )
  })

  test.each(['redrive.config.yaml', 'redrive.config.json'])(
    'is rejected with line and column, without its content, when it cannot be parsed: %s',
    async (name) => {
      const cwd = folderWith({ [name]: '{"database": {"url": "hunter2"}\n"auth": hunter2' })
      const { message } = await rejection(load(cwd))
      expect(message).toMatch(/^Cannot parse redrive\.config\.\w+ at line 2, column 1: /)
      expect(message).not.toContain('hunter2')
    },
  )

  test('is rejected without a default export', async () => {
    const cwd = folderWith({ 'redrive.config.js': 'export const config = 1' })
    expect((await rejection(load(cwd))).message).toBe(
      'redrive.config.js has no default export. Write `export default defineConfig({ … })`.',
    )
  })
})

describe('the JSON Schema of the config', () => {
  test('equals the committed file', () => {
    const file = new URL('../redrive.config.schema.json', import.meta.url)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(configJsonSchema())
  })

  test('describes every setting', () => {
    const undescribed: string[] = []
    const collect = (schema: Record<string, unknown>, path: string) => {
      const properties = (schema['properties'] ?? {}) as Record<string, Record<string, unknown>>
      for (const [name, one] of Object.entries(properties)) {
        if (one['description'] === undefined && one['properties'] === undefined) {
          undescribed.push(`${path}${name}`)
        }
        collect(one, `${path}${name}.`)
      }
    }
    collect(configJsonSchema(), '')
    expect(undescribed).toEqual([])
  })

  test('matches the type of defineConfig', () => {
    expect(defineConfig(SMALLEST)).toBe(SMALLEST)
  })
})
