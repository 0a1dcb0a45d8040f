/** Calls of gRPC services. A real server of the package responds with each status. */
import { Client, credentials, Metadata, Server, ServerCredentials, status } from '@grpc/grpc-js'
import type { Listener } from '../servers/tcp.ts'
import {
  MISSING_HOST,
  PATIENCE_MS,
  type Provocations,
  type Provoke,
  type Site,
  WAIT_MS,
} from '../site.ts'

const METHOD = '/test.Orders/Place'
const asBytes = (value: Buffer) => value

/** Starts a server that ends each call with this status. */
async function listenWith(code: status): Promise<Listener> {
  const server = new Server()
  const method = {
    path: METHOD,
    requestStream: false,
    responseStream: false,
    requestSerialize: asBytes,
    requestDeserialize: asBytes,
    responseSerialize: asBytes,
    responseDeserialize: asBytes,
  } as const
  server.addService(
    { place: method },
    {
      place: (_: unknown, respond: (error: object) => void) => respond({ code, details: 'no' }),
    },
  )
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    )
  })
  return { port, close: async () => server.forceShutdown() }
}

interface CallOptions {
  readonly waitMs?: number
  readonly isCancelled?: true
}

async function call(
  host: string,
  port: number,
  { waitMs = PATIENCE_MS, isCancelled }: CallOptions = {},
): Promise<unknown> {
  const client = new Client(`${host}:${port}`, credentials.createInsecure())
  try {
    return await new Promise((resolve, reject) => {
      const call = client.makeUnaryRequest(
        METHOD,
        asBytes,
        asBytes,
        Buffer.alloc(0),
        new Metadata(),
        { deadline: Date.now() + waitMs },
        (error, value) => (error === null ? resolve(value) : reject(error)),
      )
      if (isCancelled) call.cancel()
    })
  } finally {
    client.close()
  }
}

const ended =
  (code: status): Provoke =>
  async (site) =>
    call('127.0.0.1', await site.start(listenWith(code)))

export const GRPC_CLIENTS: Provocations = {
  '@grpc/grpc-js': {
    'closed port': async (site: Site) => call('127.0.0.1', await site.closedPort()),
    'host does not exist': () => call(MISSING_HOST, 80),
    'no response': async (site: Site) =>
      call('127.0.0.1', await site.silentPort(), { waitMs: WAIT_MS }),
    'connection reset': async (site: Site) => call('127.0.0.1', await site.resetPort()),
    'cancelled by the caller': async (site: Site) =>
      call('127.0.0.1', await site.silentPort(), { isCancelled: true }),
    'status INVALID_ARGUMENT': ended(status.INVALID_ARGUMENT),
    'status NOT_FOUND': ended(status.NOT_FOUND),
    'status ALREADY_EXISTS': ended(status.ALREADY_EXISTS),
    'status PERMISSION_DENIED': ended(status.PERMISSION_DENIED),
    'status RESOURCE_EXHAUSTED': ended(status.RESOURCE_EXHAUSTED),
    'status FAILED_PRECONDITION': ended(status.FAILED_PRECONDITION),
    'status ABORTED': ended(status.ABORTED),
    'status INTERNAL': ended(status.INTERNAL),
    'status UNAVAILABLE': ended(status.UNAVAILABLE),
    'status UNAUTHENTICATED': ended(status.UNAUTHENTICATED),
  },
}
