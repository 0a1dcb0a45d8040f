import {
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  type StreamUpdateConfig,
} from '@nats-io/jetstream'
import { connect, headers, type NatsConnection } from '@nats-io/transport-node'
import { bodyOf, type PlannedMessage } from '../evidence/message.ts'
import { type Accepted, produceOnce } from '../harness/produce.ts'
import { type Deadline, repeated } from '../harness/wait.ts'
import type { Sending } from '../harness/world.ts'

/**
 * JetStream as an administrator and a producer see it, with the plain client. It uses no code of the
 * transport under test, so a mistake there stays visible.
 */
export interface Broker {
  readonly servers: readonly string[]
  readonly replicas: number
  readonly connection: NatsConnection
  readonly manager: JetStreamManager
}

/** The durable consumer of every stream. */
export const CONSUMER = 'faults'

export const subjectsOf = (stream: string): readonly string[] => [`${stream}.>`]

/** 2 min: a server that was killed is back by then. */
export const BACK: Deadline = { withinMs: 120_000, everyMs: 200 }

export async function openBroker(servers: readonly string[]): Promise<Broker> {
  const connection = await connect({ servers: [...servers], maxReconnectAttempts: -1 })
  const manager = await jetstreamManager(connection, { checkAPI: false })
  return { servers, replicas: servers.length, connection, manager }
}

/** Publishes messages to a stream, which is created when it is missing. */
export async function produce(broker: Broker, sending: Sending): Promise<void> {
  const { queue } = sending
  await declareStream(broker, queue)
  await produceOnce(sending, (message) => publish(broker, queue, message))
}

async function declareStream({ manager, replicas }: Broker, name: string): Promise<void> {
  const isKnown = () => manager.streams.info(name).then(() => true, isMissing)
  const create = async () => {
    if (await isKnown()) return
    await manager.streams.add({
      name,
      subjects: [...subjectsOf(name)],
      retention: RetentionPolicy.Workqueue,
      num_replicas: replicas,
    })
  }
  await repeated(create, BACK)
}

function isMissing(error: unknown): false {
  if (error instanceof JetStreamApiError && error.status === 404) return false
  throw error
}

async function publish(
  { connection }: Broker,
  stream: string,
  message: PlannedMessage,
): Promise<Accepted> {
  const described = headers()
  described.set('Nats-Msg-Id', message.id)
  described.set('content-type', 'application/json')
  const options = { timeout: 5_000, headers: described }
  try {
    const response = await connection.request(`${stream}.sent`, bodyOf(message), options)
    return response.json<{ error?: unknown }>().error === undefined ? 'acknowledged' : 'refused'
  } catch {
    // The server did not respond. It may have the message.
    return 'unknown'
  }
}

/** Changes a stream while it is used, such as its limits. */
export async function changeStream(
  { manager }: Broker,
  stream: string,
  change: Partial<StreamUpdateConfig>,
): Promise<void> {
  await repeated(() => manager.streams.update(stream, change), BACK)
}
