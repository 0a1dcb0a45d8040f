/** MongoDB. The errors have the codes and labels of a real server. */
import { MongoClient, type MongoClientOptions } from 'mongodb'
import { listenAsMongo, type MongoAnswers } from '../servers/mongodb.ts'
import {
  MISSING_HOST,
  PATIENCE_MS,
  type Provocations,
  type Provoke,
  type Site,
  WAIT_MS,
} from '../site.ts'

const OPTIONS: MongoClientOptions = {
  // With a declared version, the client starts with `hello` instead of a message of old servers.
  serverApi: '1',
  directConnection: true,
  retryWrites: false,
  retryReads: false,
  serverSelectionTimeoutMS: PATIENCE_MS,
}

/** A client that stops waiting early, for servers without a response. */
const HASTY: MongoClientOptions = { serverSelectionTimeoutMS: WAIT_MS, connectTimeoutMS: WAIT_MS }

async function onClient(
  address: string,
  work: (client: MongoClient) => Promise<unknown>,
  options: MongoClientOptions = {},
): Promise<unknown> {
  const client = new MongoClient(`mongodb://${address}/app`, { ...OPTIONS, ...options })
  try {
    return await work(client)
  } finally {
    await client.close(true)
  }
}

const insert = (client: MongoClient) => client.db().collection('orders').insertOne({ n: 1 })
const find = (client: MongoClient) => client.db().collection('orders').findOne()

const against =
  (
    answers: MongoAnswers,
    work: (client: MongoClient) => Promise<unknown> = insert,
    options: MongoClientOptions = {},
  ): Provoke =>
  async (site) =>
    onClient(`127.0.0.1:${await site.start(listenAsMongo(answers))}`, work, options)

const failed = (code: number, codeName: string, ...errorLabels: readonly string[]) => ({
  ok: 0,
  code,
  codeName,
  errmsg: 'it failed',
  errorLabels,
})

const writeFailed = (code: number) => ({
  ok: 1,
  n: 0,
  writeErrors: [{ index: 0, code, errmsg: 'it failed' }],
})

export const MONGO_CLIENTS: Provocations = {
  mongodb: {
    'closed port': async (site: Site) =>
      onClient(`127.0.0.1:${await site.closedPort()}`, insert, HASTY),
    'host does not exist': () => onClient(MISSING_HOST, insert, HASTY),
    'no response': async (site: Site) =>
      onClient(`127.0.0.1:${await site.silentPort()}`, insert, HASTY),
    'password rejected': against({ saslStart: failed(18, 'AuthenticationFailed') }, insert, {
      auth: { username: 'app', password: 'wrong' },
      authMechanism: 'SCRAM-SHA-256',
    }),
    'connection lost during a command': against({ insert: 'close' }),
    'no response to a command': against({ find: 'silence' }, find, { socketTimeoutMS: WAIT_MS }),
    'pool exhausted': against(
      { insert: 'silence' },
      async (client) => {
        await client.connect()
        const first = insert(client).catch(() => undefined)
        const second = await insert(client).catch((error: unknown) => error)
        void client.close(true)
        await first
        throw second
      },
      { maxPoolSize: 1, waitQueueTimeoutMS: WAIT_MS },
    ),
    'client closed': against({}, async (client) => {
      await client.connect()
      await client.close()
      return insert(client)
    }),
    'write conflict': against({
      insert: failed(112, 'WriteConflict', 'TransientTransactionError'),
    }),
    'no primary': against({ insert: failed(10107, 'NotWritablePrimary') }),
    'primary steps down': against({ insert: failed(189, 'PrimarySteppedDown') }),
    'server shuts down': against({ find: failed(91, 'ShutdownInProgress') }, find),
    'time limit of the server': against({ find: failed(50, 'MaxTimeMSExpired') }, find),
    'lock timeout': against({ insert: failed(24, 'LockTimeout') }),
    'write concern timeout': against({
      insert: {
        ok: 1,
        n: 1,
        writeConcernError: { code: 64, codeName: 'WriteConcernTimeout', errmsg: 'no' },
      },
    }),
    'duplicate key': against({ insert: writeFailed(11_000) }),
    'document validation': against({ insert: writeFailed(121) }),
    'not authorised': against({ insert: failed(13, 'Unauthorized') }),
    'bad query': against({ find: failed(2, 'BadValue') }, find),
    'unknown code with a transient label': against(
      {
        find: failed(99_999, 'Custom', 'TransientTransactionError'),
      },
      find,
    ),
  },
}
