import { shell } from '@redrive/doctor/internal'
import {
  type DeclaredPart,
  loadRabbitMqTopology,
  type QueueSpec,
  type QueueType,
  type Topology,
} from '../composition/rabbitmq.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { Io } from '../io.ts'
import { hint, print } from '../print.ts'
import { vhostIn } from '../server/brokers.ts'
import { filledAddress } from '../server/address.ts'
import {
  createNatsTopology,
  isNats,
  type NatsTopologyOptions,
  planNatsTopology,
} from './topology-nats.ts'

export interface PlanTopologyOptions extends NatsTopologyOptions {
  /** The queue to consume; required for RabbitMQ. */
  readonly queue?: string
  /** The queue exists and is not changed. */
  readonly adopt?: boolean
  readonly type: QueueType
  readonly order: 'none' | 'lane'
}

export interface PrintTopologyOptions extends PlanTopologyOptions {
  readonly format: 'commands' | 'definitions'
}

/** Prints what a consumer of a queue needs, for an administrator. Does not connect. */
export async function planTopology(
  io: Io,
  address: string,
  options: PrintTopologyOptions,
): Promise<ExitCode> {
  if (isNats(address)) return planNatsTopology(io, options)
  const plan = await planOf(options)
  const definitions = definitionsOf(plan, vhostOf(address))
  const asText = options.format === 'definitions' ? JSON.stringify(definitions, null, 2) : undefined
  print(io, options, {
    json: definitions,
    human: (page) => page.block(asText ?? commandsOf(definitions).join('\n'), ''),
  })
  hint(io, options)`\nTo create them: redrive topology apply ADDRESS ${flagsOf(options)}`
  return EXIT.ok
}

function flagsOf({ queue, adopt, prefix, type, order }: PlanTopologyOptions): string {
  const flags = [`--queue ${shell(queue ?? '')}`, `--type ${type}`]
  if (order === 'lane') flags.push('--order lane')
  if (adopt) flags.push('--adopt')
  if (prefix !== undefined) flags.push(`--prefix ${shell(prefix)}`)
  return flags.join(' ')
}

/** Creates what a consumer of a queue needs. What exists already is not changed. */
export async function createTopology(
  io: Io,
  given: string,
  options: PlanTopologyOptions,
): Promise<ExitCode> {
  if (isNats(given)) return createNatsTopology(io, given, options)
  const address = await filledAddress(io, given)
  vhostOf(address)
  const { applyTopology } = await loadRabbitMqTopology()
  const { adopt, prefix, type, order } = options
  const queue = queueIn(options)
  const parts = await applyTopology({
    ...{ url: address, queue, queueType: type, order },
    topology: adopt ? 'adopt' : 'declare',
    ...(prefix === undefined ? {} : { prefix }),
  })
  print(io, options, {
    json: parts,
    lines: parts,
    human: (page) => {
      for (const part of parts) page.line`${statusOf(part)}  ${part.kind} ${part.name}`
    },
  })
  return EXIT.ok
}

const statusOf = ({ isNew, kind }: DeclaredPart) => {
  if (kind === 'binding') return 'ok     '
  return isNew ? 'created' : 'exists '
}

/** What must exist. Next to an adopted queue, neither an exchange nor the queue itself is created. */
interface Plan {
  readonly queues: readonly QueueSpec[]
  readonly topology: Topology | undefined
}

/** Returns the queue, which the address of a RabbitMQ broker requires. */
function queueIn({ queue }: PlanTopologyOptions): string {
  if (queue === undefined)
    throw new CommandError(EXIT.usage, 'RabbitMQ needs --queue, the queue to consume.')
  return queue
}

async function planOf(options: PlanTopologyOptions): Promise<Plan> {
  const { adopt, prefix, type, order } = options
  const queue = queueIn(options)
  if (queue === '' || prefix === '')
    throw new CommandError(
      EXIT.usage,
      'Expected --queue and --prefix to be names, not empty texts.',
    )
  const { adoptedPrefix, topologyOf } = await loadRabbitMqTopology()
  const ownPrefix = prefix ?? (adopt ? adoptedPrefix(queue) : queue)
  const topology = topologyOf(queue, type, ownPrefix, order)
  const { source, deadLetters, later } = topology
  return adopt
    ? { queues: [deadLetters, ...later], topology: undefined }
    : { queues: [deadLetters, ...later, source], topology }
}

/** Returns the virtual host of an address. */
function vhostOf(address: string): string {
  const url = URL.parse(address)
  if (url === null || !['amqp:', 'amqps:'].includes(url.protocol))
    throw new CommandError(
      EXIT.usage,
      'Expected the address of a RabbitMQ broker, such as amqp://user:password@host:5672/vhost, or of NATS, such as nats://host:4222.',
    )
  return vhostIn(address)
}

/** The format of `rabbitmqctl import_definitions` and of the management API. */
interface Definitions {
  readonly exchanges: readonly { readonly name: string; readonly vhost: string }[]
  readonly queues: readonly (QueueSpec & { readonly vhost: string })[]
  readonly bindings: readonly {
    readonly source: string
    readonly vhost: string
    readonly destination: string
    readonly routing_key: string
  }[]
}

const DURABLE = { durable: true, auto_delete: false } as const

function definitionsOf({ queues, topology }: Plan, vhost: string): Definitions {
  const direct = { type: 'direct', ...DURABLE, internal: false, arguments: {} }
  return {
    exchanges: topology === undefined ? [] : [{ name: topology.exchange, vhost, ...direct }],
    queues: queues.map(({ name, arguments: args }) => ({
      name,
      vhost,
      ...DURABLE,
      arguments: args,
    })),
    bindings:
      topology === undefined
        ? []
        : [
            {
              source: topology.exchange,
              vhost,
              destination: topology.deadLetters.name,
              ...{ destination_type: 'queue', routing_key: topology.source.name, arguments: {} },
            },
          ],
  }
}

/** Returns shell commands for the management API. Exchanges come first: some brokers require it. */
const commandsOf = ({ exchanges, queues, bindings }: Definitions): readonly string[] => [
  '# The address of the management API, for example http://admin:password@localhost:15672/api',
  // oxlint-disable-next-line no-template-curly-in-string -- the shell replaces it
  'set -e; : "${RABBITMQ_API:?is not set}"',
  ...exchanges.map(({ name, vhost, ...body }) => request('PUT', ['exchanges', vhost, name], body)),
  ...queues.map(({ name, vhost, ...body }) => request('PUT', ['queues', vhost, name], body)),
  ...bindings.map(({ source, vhost, destination, routing_key }) =>
    request('POST', ['bindings', vhost, 'e', source, 'q', destination], { routing_key }),
  ),
]

const request = (method: string, path: readonly string[], body: object) =>
  `curl -fsS -X ${method} "$RABBITMQ_API"${shell(`/${path.map(encodeURIComponent).join('/')}`)} -H 'content-type: application/json' -d ${shell(JSON.stringify(body))}`
