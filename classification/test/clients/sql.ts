/** Packages that query PostgreSQL: a real server, and two servers that misbehave. */
import { emptyDatabase } from '@redrive/dev-support'
import { PrismaPg } from '@prisma/adapter-pg'
import { listenAsLostPostgres, listenAsStrictPostgres } from '../servers/postgres.ts'
import { MISSING_HOST, PATIENCE_MS, type Provocations, type Provoke, WAIT_MS } from '../site.ts'
import { createPrisma, type Prisma } from './prisma.ts'
import { DATABASES, type Database, type Open, type OpenOptions } from './sql-databases.ts'

const DEFAULTS: OpenOptions = {
  maxConnections: 3,
  connectMs: PATIENCE_MS,
  acquireMs: PATIENCE_MS,
}

/** The address of a real database, one per file of tests. */
let created: Promise<string> | undefined
const realUrl = () => (created ??= emptyDatabase('redrive_classification'))

const at = (port: number) => `postgres://app:wrong@127.0.0.1:${port}/app`

async function withDatabase(
  open: Open,
  url: string,
  work: (database: Database) => Promise<unknown>,
  options: Partial<OpenOptions> = {},
): Promise<unknown> {
  const database = await open(url, { ...DEFAULTS, ...options })
  try {
    return await work(database)
  } finally {
    await database.close()
  }
}

const change = (id: number) => `update rows set n = n + 1 where id = ${id}`

async function createRows({ run }: Database): Promise<void> {
  await run('drop table if exists rows')
  await run('create table rows (id int primary key, n int not null)')
  await run('insert into rows values (1, 1), (2, 2)')
}

/** Two transactions change two rows in opposite order. */
async function deadlock(database: Database): Promise<unknown> {
  await createRows(database)
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const both = await Promise.allSettled([
    database.transaction(async (run) => {
      await run(change(1))
      first.resolve()
      await second.promise
      return run(change(2))
    }),
    database.transaction(async (run) => {
      await run(change(2))
      second.resolve()
      await first.promise
      return run(change(1))
    }),
  ])
  throw both.find((one) => one.status === 'rejected')?.reason
}

/** A row changes between the snapshot of a transaction and its own change. */
async function conflict(database: Database): Promise<unknown> {
  await createRows(database)
  return database.transaction(async (run) => {
    await run('set transaction isolation level repeatable read')
    await run(change(2))
    await database.run(change(1))
    return run(change(1))
  })
}

function situationsOf(open: Open): Readonly<Record<string, Provoke>> {
  const query =
    (...statements: readonly string[]): Provoke =>
    async () =>
      withDatabase(open, await realUrl(), async ({ run }) => {
        for (const sql of statements) await run(sql)
      })
  const select = ({ run }: Database) => run('select 1')
  return {
    'closed port': async (site) => withDatabase(open, at(await site.closedPort()), select),
    'host does not exist': () => withDatabase(open, `postgres://app@${MISSING_HOST}/app`, select),
    'no response': async (site) =>
      withDatabase(open, at(await site.silentPort()), select, { connectMs: WAIT_MS }),
    'connection reset': async (site) => withDatabase(open, at(await site.resetPort()), select),
    'password rejected': async (site) =>
      withDatabase(open, at(await site.start(listenAsStrictPostgres())), select),
    'role does not exist': async () => {
      const url = new URL(await realUrl())
      url.username = 'nobody'
      return withDatabase(open, url.href, select)
    },
    'database does not exist': async () => {
      const url = new URL(await realUrl())
      url.pathname = '/none'
      return withDatabase(open, url.href, select)
    },
    'connection lost during a query': async (site) =>
      withDatabase(open, at(await site.start(listenAsLostPostgres())), select),
    'connection ended by an administrator': query('select pg_terminate_backend(pg_backend_pid())'),
    'statement timeout': async () =>
      withDatabase(open, await realUrl(), ({ transaction }) =>
        transaction(async (run) => {
          await run("set local statement_timeout = '20ms'")
          return run('select pg_sleep(20)')
        }),
      ),
    'pool exhausted': async () =>
      withDatabase(
        open,
        await realUrl(),
        (database) => database.transaction(() => select(database)),
        { maxConnections: 1, acquireMs: WAIT_MS },
      ),
    deadlock: async () => withDatabase(open, await realUrl(), deadlock),
    'serialization failure': async () => withDatabase(open, await realUrl(), conflict),
    'lock not available': async () =>
      withDatabase(open, await realUrl(), async (database) => {
        await createRows(database)
        return database.transaction(async (run) => {
          await run(change(1))
          return database.run('select 1 from rows for update nowait')
        })
      }),
    'duplicate key': async () =>
      withDatabase(open, await realUrl(), async (database) => {
        await createRows(database)
        return database.run('insert into rows values (1, 1)')
      }),
    'value missing': async () =>
      withDatabase(open, await realUrl(), async (database) => {
        await createRows(database)
        return database.run('insert into rows values (3, null)')
      }),
    'value of another type': query("select 'x'::int"),
    'exception of a function': query("do $$ begin raise exception 'no'; end $$"),
    'table does not exist': query('select * from none'),
  }
}

/** Queries of a model. Prisma gives them other codes than raw SQL. */
const byModel =
  (
    url: (site: Parameters<Provoke>[0]) => Promise<string>,
    work: (prisma: Prisma) => Promise<unknown>,
  ): Provoke =>
  async (site) => {
    const prisma = createPrisma(new PrismaPg({ connectionString: await url(site) }), PATIENCE_MS)
    try {
      return await work(prisma)
    } finally {
      await prisma.$disconnect()
    }
  }

const find = (prisma: Prisma) => prisma.account.findFirst()

const MODEL = {
  'model: closed port': byModel(async (site) => at(await site.closedPort()), find),
  'model: connection reset': byModel(async (site) => at(await site.resetPort()), find),
  'model: password rejected': byModel(
    async (site) => at(await site.start(listenAsStrictPostgres())),
    find,
  ),
  'model: table does not exist': byModel(realUrl, async (prisma) => {
    await prisma.$executeRawUnsafe('drop table if exists accounts')
    return find(prisma)
  }),
  'model: duplicate key': byModel(realUrl, async (prisma) => {
    await prisma.$executeRawUnsafe('drop table if exists accounts')
    await prisma.$executeRawUnsafe('create table accounts (id int primary key, email text)')
    const data = { id: 1, email: 'a@example.com' }
    await prisma.account.create({ data })
    return prisma.account.create({ data })
  }),
  'model: no connection for a transaction': async () =>
    withDatabase(
      DATABASES['@prisma/client'],
      await realUrl(),
      ({ transaction }) => transaction(() => transaction((run) => run('select 1'))),
      { maxConnections: 1, acquireMs: WAIT_MS },
    ),
} satisfies Readonly<Record<string, Provoke>>

export const SQL_CLIENTS: Provocations = {
  '@prisma/client': { ...situationsOf(DATABASES['@prisma/client']), ...MODEL },
  knex: situationsOf(DATABASES.knex),
  sequelize: situationsOf(DATABASES.sequelize),
  typeorm: situationsOf(DATABASES.typeorm),
}
