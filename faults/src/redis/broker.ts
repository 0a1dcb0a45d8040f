import { Redis, ReplyError } from 'ioredis'
import { bodyOf, type PlannedMessage } from '../evidence/message.ts'
import { type Accepted, produceOnce } from '../harness/produce.ts'
import type { Proxy } from '../harness/proxy.ts'
import type { Deadline } from '../harness/wait.ts'
import type { Sending } from '../harness/world.ts'

/**
 * Redis as an administrator and a producer see it, with the plain client. It uses no code of the
 * transport under test, so a mistake there stays visible.
 */
export interface Broker {
  readonly url: string
  readonly client: Redis
  /** Between all clients and the server, so that a fail-over leads them to another one. */
  readonly proxy: Proxy
  /** Copies of each message that producers send, as when they repeat an `XADD`. */
  copies: number
  /** Whether a message counts as accepted only when the replica has it. */
  needsReplica: boolean
  /** Messages whose `XADD` had a response. */
  readonly responded: Set<string>
}

/** The consumer group of every stream. */
export const GROUP = 'faults'

/** 2 min: a server that was killed is back by then. */
export const BACK: Deadline = { withinMs: 120_000, everyMs: 200 }
const RESPONSE_MS = 5_000
/** 50 ms: a longer wait would keep the connection from sending other messages. */
const REPLICA_MS = 50

export function openBroker(url: string, proxy: Proxy): Broker {
  const client = new Redis(url, {
    // A message without a response must not be sent again.
    autoResendUnfulfilledCommands: false,
    enableOfflineQueue: false,
    commandTimeout: RESPONSE_MS,
    retryStrategy: () => 100,
    lazyConnect: true,
  })
  // Each request that fails reports why.
  client.on('error', () => undefined)
  return { url, client, proxy, copies: 1, needsReplica: false, responded: new Set() }
}

/** Adds messages to a stream. */
export const produce = (broker: Broker, sending: Sending): Promise<void> =>
  produceOnce(sending, (message) => publish(broker, sending.queue, message))

async function publish(
  { client, copies, needsReplica, responded }: Broker,
  stream: string,
  message: PlannedMessage,
): Promise<Accepted> {
  const fields = ['redrive-id', message.id, 'content-type', 'application/json']
  try {
    for (let copy = 0; copy < copies; copy++) {
      await client.xadd(stream, '*', 'body', bodyOf(message), ...fields)
    }
    responded.add(message.id)
    if (!needsReplica) return 'acknowledged'
    return (await client.wait(1, REPLICA_MS)) > 0 ? 'acknowledged' : 'unknown'
  } catch (error) {
    // The server rejected it, or did not respond. In the second case it may have the message.
    return error instanceof ReplyError ? 'refused' : 'unknown'
  }
}
