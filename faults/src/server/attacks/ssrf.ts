import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:https'
import { fileURLToPath } from 'node:url'
import type { Drill } from '../../drill.ts'
import { becomesTrue, lasting, until } from '../../wait.ts'
import { startReplica } from '../replica.ts'
import { attack, type Scene } from './attack.ts'
import { certificate } from './certificate.ts'
import { type Listening, started } from './listening.ts'

/** Whoever may say where alerts go cannot make the server ask for what is inside its network. */
export const SSRF: Drill = attack(
  'ssrf',
  'alerts to addresses inside, in every spelling, by name, by redirect and by a name that turns',
  async (scene) => {
    const { target } = scene
    await target.queues.kill(target.pool, 'orders', [{}])
    await referred(scene)
    const traps = await Traps.set(target.folder)
    try {
      await play(scene, traps)
    } finally {
      await traps.end()
    }
  },
)

/** A schema that has the rest of it somewhere else. */
async function referred({ target, tries }: Scene): Promise<void> {
  const { as, queues, pool, canary } = target
  const words = ['$ref', '$schema', '$id', '$dynamicRef']
  for (const word of words) {
    const type = `referred by ${word}`
    const body = { type, schema: { [word]: `${canary.url}/schema.json`, type: 'object' } }
    const kept = await as.root('PUT', '/api/v1/sources/orders/schema', { body })
    const ids = await queues.kill(pool, 'orders', [{ type }])
    const told = await as.alice('POST', '/api/v1/replays', { body: { selection: { ids } } })
    const said = `${kept.status}, ${told.status}`
    tries.note(`a schema is fetched by ${word} (${said})`, canary.heard.splice(0).length > 0)
    tries.note(`a schema with ${word} makes a plan fail (${said})`, told.status >= 500)
  }
}

/** What is inside, by all the ways to write it; the port is that of the trap. */
const INSIDE = [
  '127.0.0.1',
  'localhost',
  '127.1',
  '2130706433',
  '0x7f000001',
  '0177.0.0.1',
  '0',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[::ffff:7f00:1]',
  '[::]',
  'inside.test',
  'mixed.test',
]
/** Gives out the credentials of the machine. Nobody is there, so what is said about it is looked at. */
const METADATA = ['169.254.169.254', '[fd00:ec2::254]']

const NAMES_PATH = fileURLToPath(new URL('./names.ts', import.meta.url))
/** 30 s for alerts to be told: they are as soon as the server has started. */
const TOLD_MS = 30_000
/** 2 s more for those that are on their way: all are told at once, and this machine is near. */
const LATE_MS = 2_000

async function play({ target, tries }: Scene, traps: Traps): Promise<void> {
  const hosts = [...INSIDE, 'turning.test'].map((host) => `${host}:${traps.port}`)
  const urls = [...hosts, ...METADATA, `outside.test:${traps.port}`].map(
    (host) => `https://${host}/`,
  )
  const secret = `whsec_${randomBytes(32).toString('base64')}`
  const config = {
    ...target.config,
    alerts: {
      depth: 1,
      allowPrivate: ['127.0.0.2/32'],
      webhooks: [...urls, `https://outside.test:${traps.port}/redirect`].map((url) => ({
        url,
        secret,
      })),
    },
  }
  const server = await startReplica({
    ...{ name: 'watch', roles: 'watch', folder: target.folder, config },
    env: {
      NODE_OPTIONS: `--import=${NAMES_PATH}`,
      NODE_EXTRA_CA_CERTS: traps.certificatePath,
    },
  })
  try {
    // The one that may be told is told: so all of them were tried.
    await until('alerts are told', () => traps.outside.includes('/'), { withinMs: TOLD_MS })
    await until('a redirect is met', () => traps.outside.includes('/redirect'), {
      withinMs: TOLD_MS,
    })
    await becomesTrue(() => traps.caught.length > 0, { withinMs: LATE_MS })
    if (traps.caught.length > 0) await lasting(LATE_MS)
  } finally {
    await server.kill()
  }
  const attempts = [...urls, 'a redirect to the inside']
  for (const url of attempts) tries.note(url, false)
  for (const what of new Set(traps.caught)) tries.note(what, true)
}

/** A server inside, and one on the internet that sends people there. */
class Traps {
  readonly port: number
  readonly certificatePath: string
  /** What came to the inside, by the name it asked for. */
  readonly caught: string[]
  /** What came to the internet, by its path. */
  readonly outside: string[]
  readonly #all: readonly Listening[]

  static async set(folder: string): Promise<Traps> {
    const named = ['localhost', 'outside.test', 'inside.test', 'mixed.test', 'turning.test']
    const addresses = ['127.0.0.1', '127.0.0.2', '0.0.0.0', '::1', '::', '::ffff:127.0.0.1']
    const names = [...named.map((name) => `DNS:${name}`), ...addresses.map((ip) => `IP:${ip}`)]
    const tls = await certificate(folder, names)
    const [caught, outside]: [string[], string[]] = [[], []]
    const inside = () => {
      const server: Server = createServer(tls, (request, response) => {
        caught.push(`the inside is told of ${request.url} as ${request.headers.host}`)
        response.end()
      })
      return server.on('connection', () => caught.push('a connection to the inside is made'))
    }
    const first = await started(inside(), '127.0.0.1')
    const { port } = first
    const internet = createServer(tls, (request, response) => {
      outside.push(request.url ?? '')
      const isGood = request.headers.host?.startsWith('outside.test') === true
      const isSent = request.url === '/redirect'
      const headers = isSent ? { location: `https://127.0.0.1:${port}/redirected` } : {}
      // One that turns is told that it failed, so that it is asked for again.
      response.writeHead(isSent ? 307 : isGood ? 200 : 500, headers).end()
    })
    const others = [
      await started(inside(), '::1', port),
      await started(internet, '127.0.0.2', port),
    ]
    return new Traps(port, tls.path, caught, outside, [first, ...others])
  }

  private constructor(
    port: number,
    certificatePath: string,
    caught: string[],
    outside: string[],
    all: readonly Listening[],
  ) {
    this.port = port
    this.certificatePath = certificatePath
    this.caught = caught
    this.outside = outside
    this.#all = all
  }

  async end(): Promise<void> {
    await Promise.all(this.#all.map((one) => one.end()))
  }
}
