import type { applyTopology, planTopology } from '@redrive/nats'
import { CommandError, EXIT } from '../exit.ts'
import type { PeekTarget } from '../peek/read-queue.ts'
import type { Certificates } from '../server/certificates.ts'

/** Loads the topology of consumers of NATS JetStream. */
export async function loadNatsTopology(): Promise<NatsTopology> {
  const { applyTopology: apply, planTopology: plan } = await import('@redrive/nats')
  return { applyTopology: apply, planTopology: plan }
}

interface NatsTopology {
  readonly applyTopology: typeof applyTopology
  readonly planTopology: typeof planTopology
}

/** Opens the stream of Redrive with the dead letters of a consumer. */
export async function openNats(
  { href }: URL,
  queue: string,
  tls: Certificates | undefined,
): Promise<PeekTarget> {
  const [{ JetStreamApiError, jetstreamManager }, { connect }, { connectionOptions, natsPeek }] =
    await Promise.all([
      import('@nats-io/jetstream'),
      import('@nats-io/transport-node'),
      import('@redrive/nats'),
    ])
  const connection = await connect({
    ...connectionOptions(href),
    // A peek that loses its server fails.
    reconnect: false,
    ...(tls === undefined ? {} : { tls: { ...tls } }),
  })
  const close = () => connection.close()
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false })
    const peek = await natsPeek(manager, queue).catch((error: unknown) => {
      throw error instanceof JetStreamApiError && error.status === 404 ? noStream(queue) : error
    })
    if (peek === undefined) throw notOfRedrive(queue)
    const drain = async ({ limit }: { readonly limit: number }) => ({
      deadLetters: await peek.read(limit),
      ...NOTHING_HELD,
    })
    return { source: { drain, depth: () => peek.depth() }, trace: undefined, close }
  } catch (error) {
    await close()
    throw error
  }
}

/** A peek that only reads has nothing to release. */
const NOTHING_HELD = { release: () => Promise.resolve(), abandon: () => Promise.resolve() }

const noStream = (name: string) =>
  new CommandError(
    EXIT.notFound,
    `Stream "${name}" does not exist. Expected a stream of Redrive with dead letters, such as "ORDERS-billing-dlq" for the consumer "billing" of the stream "ORDERS".`,
  )

const notOfRedrive = (name: string) =>
  new CommandError(
    EXIT.notFound,
    `Stream "${name}" is not a stream of Redrive with the dead letters of a consumer. Expected a name such as "ORDERS-billing-dlq".`,
  )
