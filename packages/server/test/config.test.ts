import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { isRedriveError } from '@redrive/core'
import { fastify } from 'fastify'
import { afterAll, describe, expect, test } from 'vitest'
import { readConfig } from '../src/config/load.ts'
import { configJsonSchema, defineConfig, loadConfig } from '../src/index.ts'
import { rejection } from './database-stage.ts'

const folder = mkdtempSync(join(tmpdir(), 'redrive-config-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let folders = 0

/** A working directory with these files in it. */
function folderWith(files: Readonly<Record<string, string>>): string {
  const made = mkdtempSync(join(folder, `${folders++}-`))
  for (const [name, content] of Object.entries(files)) writeFileSync(join(made, name), content)
  return made
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

describe('a placeholder', () => {
  const withUrl = (url: string) => ({ ...SMALLEST, database: { url } })
  const urlOf = (raw: unknown, env: Readonly<Record<string, string>>, cwd?: string) =>
    read(raw, env, cwd).database.url.reveal()

  test('stands for a variable, anywhere in a text and more than once', () => {
    const raw = withUrl('postgres://${USER}:${PASSWORD}@db.example/${USER}')
    expect(urlOf(raw, { USER: 'ada', PASSWORD: 'p' })).toBe('postgres://ada:p@db.example/ada')
  })

  test('stands for what is in the file that NAME_FILE names, without its last line end', () => {
    const cwd = folderWith({ secret: 'postgres://from-a-file/db\n' })
    expect(urlOf(withUrl('${URL}'), { URL_FILE: 'secret' }, cwd)).toBe('postgres://from-a-file/db')
  })

  test('is the variable when there are both, and the file when the variable is empty', () => {
    const cwd = folderWith({ secret: 'postgres://file/db' })
    const files = { URL_FILE: 'secret' }
    expect(urlOf(withUrl('${URL}'), { ...files, URL: 'postgres://env/db' }, cwd)).toBe(
      'postgres://env/db',
    )
    expect(urlOf(withUrl('${URL}'), { ...files, URL: '' }, cwd)).toBe('postgres://file/db')
  })

  test('has a default for when nothing is set', () => {
    const raw = withUrl('postgres://${HOST:-localhost}/db')
    expect(urlOf(raw, {})).toBe('postgres://localhost/db')
    expect(urlOf(raw, { HOST: 'there' })).toBe('postgres://there/db')
  })

  test('that is not set is told by name and by both ways to set it', () => {
    expect(problemsOf(withUrl('${DATABASE_URL}'))).toEqual([
      'database.url: the placeholder ${DATABASE_URL} is not set. Set DATABASE_URL, or set DATABASE_URL_FILE to the name of a file that has the value.',
    ])
  })

  test('whose file cannot be read is told, default or not', () => {
    expect(problemsOf(withUrl('${URL:-postgres://x/y}'), { URL_FILE: '/nowhere' })).toEqual([
      'database.url: URL_FILE names /nowhere, which cannot be read (ENOENT).',
    ])
  })

  test('gives numbers, switches and lists too', () => {
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

  test('is written as text with two dollars', () => {
    expect(urlOf(withUrl('postgres://u:$${x}@h/db'), {})).toBe('postgres://u:${x}@h/db')
  })
})

describe('a config', () => {
  test('tells everything that is wrong with it at once, each with its place', () => {
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
      'sources.orders.rabbitmq.url: the placeholder ${RABBIT} is not set. Set RABBIT, or set RABBIT_FILE to the name of a file that has the value.',
      'database.url: expected a URL that begins with postgres:// or postgresql://',
      'database.connections: expected a whole number from 12 to 1000',
      "listen: expected an address and a port, such as '127.0.0.1:8080'",
      'auth: the server does not start without authentication. Say how people sign in (auth.oidc), or, to try it on this machine alone, auth.development.',
      'access.0.roles.0: expected some of viewer, operator, approver, admin',
      'sources.orders.rabbitmq.queue: expected text, got nothing',
      'sources.orders.rabbitmq.que: there is no such setting',
      'sources.clicks: expected exactly one of rabbitmq, kafka, postgres',
      'sources.nothing: expected exactly one of rabbitmq, kafka, postgres',
      "shutdown.grace: expected a duration from '1s' to '1h'",
      'colour: there is no such setting',
    ])
  })

  test.each([
    [['10.0.0.1', '10.0.0.0/8', 'fd00::/8', '::1', 'loopback', 'linklocal', 'uniquelocal']],
    ['10.0.0.1, 192.168.0.0/16'],
  ])('believes proxies by address or network, as the listener does: %j', (trustProxy) => {
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
  ])('looks up no names of proxies: %s', (trustProxy) => {
    expect(problemsOf({ ...SMALLEST, trustProxy })).toEqual([
      "trustProxy: expected a list of addresses, networks such as '10.0.0.0/8', or some of loopback, linklocal, uniquelocal",
    ])
  })

  test('names what no ingest would take', () => {
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
    'without authentication is refused: %o',
    (auth) => {
      const { auth: _, ...rest } = SMALLEST
      expect(problemsOf({ ...rest, ...auth })).toEqual([
        'auth: the server does not start without authentication. Say how people sign in (auth.oidc), or, to try it on this machine alone, auth.development.',
      ])
    },
  )

  test.each(['0.0.0.0:8080', '[::]:8080', '192.168.1.4:8080', 'redrive.example:8080'])(
    'for development may not listen at %s',
    (listen) => {
      expect(problemsOf({ ...SMALLEST, listen })).toEqual([
        `listen: with auth.development everybody who can connect may do everything, so it must be a loopback address such as 127.0.0.1:8080, got ${listen}. Or say auth.oidc.`,
      ])
    },
  )

  test.each(['127.0.0.1:8080', '127.0.0.2:1', '[::1]:8080', 'localhost:0'])(
    'for development may listen at %s',
    (listen) => expect(problemsOf({ ...SMALLEST, listen })).toEqual([]),
  )

  test('with a provider needs to know where people come back to, over https', () => {
    const auth = { oidc: { issuer: 'https://id.example', clientId: 'redrive' } }
    expect(problemsOf({ ...SMALLEST, auth })).toEqual([
      'publicUrl: is needed with auth.oidc: the provider sends people back there',
    ])
    expect(problemsOf({ ...SMALLEST, auth, publicUrl: 'http://redrive.example' })).toEqual([
      'publicUrl: expected https:// unless it is this machine: sessions need it',
    ])
    expect(problemsOf({ ...SMALLEST, auth, publicUrl: 'https://redrive.example' })).toEqual([])
  })

  test('that says both ways to sign in is refused', () => {
    const auth = { oidc: { issuer: 'https://id.example', clientId: 'redrive' }, development: {} }
    expect(problemsOf({ ...SMALLEST, auth })).toEqual([
      'auth: expected exactly one of oidc, development',
    ])
  })

  test('serves metrics without authentication on a listener of their own only', () => {
    const metrics = { listen: '127.0.0.1:8080' }
    expect(problemsOf({ ...SMALLEST, metrics })).toEqual([
      'metrics.listen: expected another address than that of listen: nobody is asked who they are there',
    ])
  })

  test('has keys that are keys', () => {
    const keys = { current: 'b', all: { a: 'c2hvcnQ=' } }
    expect(problemsOf({ ...SMALLEST, keys })).toEqual([
      'keys.current: there is no such key in all',
      'keys.all.a: expected 32 bytes as base64',
    ])
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const signingKey = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
    const audit = { signingKey, checkpointFile: 'audit.jsonl' }
    expect(problemsOf({ ...SMALLEST, audit })).toEqual([
      'audit.signingKey: expected an Ed25519 private key as PEM: openssl genpkey -algorithm ed25519',
    ])
  })

  test('never shows its secrets, however it is printed', () => {
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
      keys: { current: 'a', all: { a: Buffer.alloc(32, 'hunter2').toString('base64') } },
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

describe('the file', () => {
  const load = (cwd: string, env = {}, file?: string) =>
    loadConfig({ cwd, env, ...(file === undefined ? {} : { file }) })

  test.each([
    ['redrive.config.yaml', YAML],
    ['redrive.config.yml', YAML],
    ['redrive.config.json', JSON.stringify(SMALLEST)],
    ['redrive.config.js', `export default ${JSON.stringify(SMALLEST)}`],
    [
      'redrive.config.ts',
      `interface Said { readonly [name: string]: unknown }\nconst config: Said = ${JSON.stringify(SMALLEST)}\nexport default config`,
    ],
  ])('may be %s', async (name, content) => {
    const cwd = folderWith({ [name]: content })
    const { config, file } = await load(cwd)
    expect(file).toBe(join(cwd, name))
    expect(config.sources['orders']?.rabbitmq?.queue).toBe('orders')
  })

  test('is the one that is named, by option before variable', async () => {
    const cwd = folderWith({ 'a.yaml': YAML, 'b.yaml': YAML })
    expect((await load(cwd, { REDRIVE_CONFIG: 'a.yaml' })).file).toBe(join(cwd, 'a.yaml'))
    expect((await load(cwd, { REDRIVE_CONFIG: 'a.yaml' }, 'b.yaml')).file).toBe(join(cwd, 'b.yaml'))
  })

  test('that is not there is told with what to do', async () => {
    const cwd = folderWith({})
    expect((await rejection(load(cwd))).message).toBe(
      `There is no config in ${cwd}: expected one of redrive.config.yaml, redrive.config.yml, redrive.config.json, redrive.config.ts, redrive.config.js. Run \`redrive init\` to write one, or name it with --config or REDRIVE_CONFIG.`,
    )
    expect((await rejection(load(cwd, {}, 'x.yaml'))).message).toBe(
      `There is no config ${join(cwd, 'x.yaml')}. Look at --config and REDRIVE_CONFIG.`,
    )
  })

  test('is one: two in a folder are refused', async () => {
    const cwd = folderWith({ 'redrive.config.yaml': YAML, 'redrive.config.json': '{}' })
    expect((await rejection(load(cwd))).message).toBe(
      `There are 2 configs in ${cwd}: redrive.config.yaml, redrive.config.json. Keep one, or name it with --config.`,
    )
  })

  test.each(['redrive.config.yaml', 'redrive.config.json'])(
    'that cannot be read is told by line and column, without what is written there: %s',
    async (name) => {
      const cwd = folderWith({ [name]: '{"database": {"url": "hunter2"}\n"auth": hunter2' })
      const { message } = await rejection(load(cwd))
      expect(message).toMatch(/^redrive\.config\.\w+ cannot be read: line 2, column 1: /)
      expect(message).not.toContain('hunter2')
    },
  )

  test('without a default export is told', async () => {
    const cwd = folderWith({ 'redrive.config.js': 'export const config = 1' })
    expect((await rejection(load(cwd))).message).toBe(
      'redrive.config.js has no default export: `export default defineConfig({ … })`.',
    )
  })
})

describe('the schema for editors', () => {
  test('is the one that is checked in', () => {
    const file = new URL('../redrive.config.schema.json', import.meta.url)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(configJsonSchema())
  })

  test('says what every setting means', () => {
    const silent: string[] = []
    const look = (schema: Record<string, unknown>, path: string) => {
      const properties = (schema['properties'] ?? {}) as Record<string, Record<string, unknown>>
      for (const [name, one] of Object.entries(properties)) {
        if (one['description'] === undefined && one['properties'] === undefined) {
          silent.push(`${path}${name}`)
        }
        look(one, `${path}${name}.`)
      }
    }
    look(configJsonSchema(), '')
    expect(silent).toEqual([])
  })

  test('is the type of defineConfig', () => {
    expect(defineConfig(SMALLEST)).toBe(SMALLEST)
  })
})
