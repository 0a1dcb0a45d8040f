import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:https'
import { fileURLToPath } from 'node:url'
import type { Scenario } from '../../harness/scenario.ts'
import { becomesTrue, lasting, until } from '../../harness/wait.ts'
import { startReplica } from '../replica.ts'
import { attack, type Scene } from './attack.ts'
import { certificate } from './certificate.ts'
import { type Listening, started } from '../../harness/listening.ts'

/** A person who sets the target of alerts cannot make the server call addresses inside its network. */
export const SSRF: Scenario = attack(
  'ssrf',
  'alerts to internal addresses: in every spelling, by name, by redirect and by DNS rebinding',
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

/** Tries a schema that refers to another address. */
async function referred({ target, tries }: Scene): Promise<void> {
  const { as, queues, pool, canary } = target
  const words = ['$ref', '$schema', '$id', '$dynamicRef']
  for (const word of words) {
    const type = `referred by ${word}`
    const body = { type, schema: { [word]: `${canary.url}/schema.json`, type: 'object' } }
    const kept = await as.root('PUT', '/api/v1/sources/orders/schema', { body })
    const ids = await queues.kill(pool, 'orders', [{ type }])
    const response = await as.alice('POST', '/api/v1/replays', { body: { selection: { ids } } })
    const statuses = `${kept.status}, ${response.status}`
    tries.note(
      `a schema is fetched through ${word} (${statuses})`,
      canary.requests.splice(0).length > 0,
    )
    tries.note(`a schema with ${word} makes a plan fail (${statuses})`, response.status >= 500)
  }
}

/** Internal addresses in every spelling; the port is that of the trap. */
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
/**
 * Addresses that return the credentials of a cloud machine. No server listens there, so the test
 * reads the log instead.
 */
const METADATA = ['169.254.169.254', '[fd00:ec2::254]']

const NAMES_PATH = fileURLToPath(new URL('./names.ts', import.meta.url))
/** 30 s for alerts to be sent. The server sends them directly after its start. */
const ALERTS_MS = 30_000
/** 2 s more for late ones. All are sent concurrently, and this machine is local. */
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
    // The allowed alert has arrived, so all others were tried.
    await until('alerts are sent', () => traps.outside.includes('/'), { withinMs: ALERTS_MS })
    await until('a redirect is requested', () => traps.outside.includes('/redirect'), {
      withinMs: ALERTS_MS,
    })
    await becomesTrue(() => traps.caught.length > 0, { withinMs: LATE_MS })
    if (traps.caught.length > 0) await lasting(LATE_MS)
  } finally {
    await server.kill()
  }
  const attempts = [...urls, 'a redirect to an internal address']
  for (const url of attempts) tries.note(url, false)
  for (const what of new Set(traps.caught)) tries.note(what, true)
}

/** An internal server, and an internet server that redirects to it. */
class Traps {
  readonly port: number
  readonly certificatePath: string
  /** Requests that reached the internal server, with the requested host. */
  readonly caught: string[]
  /** Requests that reached the internet server, by path. */
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
        caught.push(`the internal server received ${request.url} for host ${request.headers.host}`)
        response.end()
      })
      return server.on('connection', () =>
        caught.push('a connection to the internal server was opened'),
      )
    }
    const first = await started(inside(), '127.0.0.1')
    const { port } = first
    const internet = createServer(tls, (request, response) => {
      outside.push(request.url ?? '')
      const isGood = request.headers.host?.startsWith('outside.test') === true
      const isSent = request.url === '/redirect'
      const headers = isSent ? { location: `https://127.0.0.1:${port}/redirected` } : {}
      // The rebinding name gets an error response, so that the alert is sent again.
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
