import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { ROOT, urlsOf } from '@redrive/dev-support'
import { topologyOf } from '@redrive/rabbitmq'
import { type Channel, type ChannelModel, connect, type Options } from 'amqplib'

/** A separate virtual host on a running broker. */
export interface RabbitmqWorld {
  readonly channel: Channel
  readonly vhost: string
  readonly management: string
  readonly amqp: string
  /** The management API. */
  readonly api: (method: string, path: string, body?: object) => Promise<unknown>
  /** Runs the command of a fix in a shell. */
  readonly shell: (command: string) => Promise<void>
  readonly end: () => Promise<void>
}

const run = promisify(execFile)

export async function rabbitmqWorld(service: string): Promise<RabbitmqWorld> {
  const urls = await urlsOf(service)
  const management = urls.find((url) => url.startsWith('http:')) ?? ''
  const vhost = `doctor_${randomBytes(6).toString('hex')}`
  const api = apiOf(management)
  await api('PUT', `vhosts/${vhost}`)
  await api('PUT', `permissions/${vhost}/guest`, { configure: '.*', write: '.*', read: '.*' })
  const amqp = `${urls.find((url) => url.startsWith('amqp:')) ?? ''}/${vhost}`
  const connection: ChannelModel = await connect(amqp)
  const channel = await connection.createChannel()
  const end = async () => {
    await connection.close()
    await api('DELETE', `vhosts/${vhost}`)
  }
  // The first node of a cluster.
  const ctl = `${ROOT}dev/services do ${service} ctl ${service === 'rabbitmq' ? '' : '1'}`
  const shell = async (command: string) => {
    await run('bash', ['-ec', `rabbitmqctl() { ${ctl} "$@"; }\n${command}`], { cwd: ROOT })
  }
  return { channel, vhost, management, amqp, api, shell, end }
}

const apiOf = (management: string): RabbitmqWorld['api'] => {
  const { username, password, origin } = new URL(management)
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  return async (method, path, body) => {
    const init = { method, headers: { authorization, 'content-type': 'application/json' } }
    const answer = await fetch(
      `${origin}/api/${path}`,
      body === undefined ? init : { ...init, body: JSON.stringify(body) },
    )
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return text === '' ? undefined : (JSON.parse(text) as unknown)
  }
}

type Arguments = Readonly<Record<string, unknown>>

/** Changes of a good deployment: arguments (undefined removes one) and options of a queue. */
export interface Changes {
  readonly source?: Arguments
  readonly deadLetters?: Arguments
  readonly delay?: Arguments
  readonly sourceOptions?: Options.AssertQueue
  readonly deadLetterOptions?: Options.AssertQueue
  readonly isUnbound?: boolean
  readonly isWithoutExchange?: boolean
  readonly exchangeOptions?: Options.AssertExchange
  readonly nodes?: number
}

/** The queues that the transport declares for `orders`, with the given changes. */
export async function deploy({ channel }: RabbitmqWorld, changes: Changes = {}): Promise<void> {
  const { exchange, source, deadLetters, later } = topologyOf('orders', 'quorum')
  const delay = later.find(({ name }) => name === 'orders.delay.5s')
  const replayed = later.find(({ name }) => name === 'orders.replayed')
  const declare = async (name: string, args: Arguments, options: Options.AssertQueue = {}) => {
    const kept = Object.fromEntries(Object.entries(args).filter(([, value]) => value !== undefined))
    await channel.assertQueue(name, { durable: true, ...options, arguments: kept })
  }
  if (changes.isWithoutExchange !== true) {
    await channel.assertExchange(exchange, 'direct', changes.exchangeOptions)
  }
  await declare(
    deadLetters.name,
    { ...deadLetters.arguments, ...changes.deadLetters },
    changes.deadLetterOptions,
  )
  if (changes.isWithoutExchange !== true && changes.isUnbound !== true) {
    await channel.bindQueue(deadLetters.name, exchange, 'orders')
  }
  await declare('orders', { ...source.arguments, ...changes.source }, changes.sourceOptions)
  await declare('orders.delay.5s', { ...delay?.arguments, ...changes.delay })
  await declare('orders.replayed', { ...replayed?.arguments })
}

/** The arguments of a quorum queue that a classic queue does not support. */
export const AS_CLASSIC: Arguments = {
  'x-queue-type': 'classic',
  'x-overflow': undefined,
  'x-delivery-limit': undefined,
  'x-dead-letter-strategy': undefined,
}
