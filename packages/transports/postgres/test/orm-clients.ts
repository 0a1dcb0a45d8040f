import 'reflect-metadata'
import { createRequire } from 'node:module'
import { MikroORM } from '@mikro-orm/postgresql'
import { PrismaPg } from '@prisma/adapter-pg'
import { type GetPrismaClientConfig, getPrismaClient } from '@prisma/client/runtime/client'
import { DataSource } from 'typeorm'
import { viaMikroOrm, viaPrisma } from '../src/index.ts'
import type { Client, CLIENTS } from './clients.ts'

/** Connects with the first transaction. */
const later = <T>(
  open: () => Promise<T>,
  use: (db: T) => Omit<Client, 'end'> & { end(): Promise<unknown> },
): Client => {
  let opened: Promise<T> | undefined
  const db = () => (opened ??= open())
  return {
    transaction: async (work) => use(await db()).transaction(work),
    end: async () => (opened === undefined ? undefined : use(await opened).end()),
  }
}

const typeorm = (url: string): Client =>
  later(
    () => new DataSource({ type: 'postgres', url }).initialize(),
    (db) => ({
      transaction: (work) => db.transaction((manager) => work(manager)),
      end: () => db.destroy(),
    }),
  )

const mikroOrm = (url: string): Client =>
  later(
    () => MikroORM.init({ clientUrl: url, entities: [], discovery: { warnWhenNoEntities: false } }),
    (db) => ({
      transaction: (work) => db.em.fork().transactional((em) => work(viaMikroOrm(em))),
      end: () => db.close(),
    }),
  )

const require = createRequire(import.meta.url)
const COMPILER = '@prisma/client/runtime/query_compiler_small_bg.postgresql'
type CompilerLoading = NonNullable<GetPrismaClientConfig['compilerWasm']>
type CompilerRuntime = Awaited<ReturnType<CompilerLoading['getRuntime']>>

/** The configuration that Prisma's generator, which downloads programs, writes for a schema without models. */
const PrismaClient = getPrismaClient({
  previewFeatures: [],
  clientVersion: '7.10.0',
  engineVersion: '7.10.0',
  activeProvider: 'postgresql',
  inlineSchema: 'datasource db {\n  provider = "postgresql"\n}\n',
  runtimeDataModel: { models: {}, enums: {}, types: {} },
  parameterizationSchema: { strings: [], graph: Buffer.alloc(64).toString('base64url') },
  compilerWasm: {
    getRuntime: async () => require(`${COMPILER}.js`) as CompilerRuntime,
    getQueryCompilerWasmModule: async () => {
      const { wasm } = require(`${COMPILER}.wasm-base64.js`) as { readonly wasm: string }
      return new WebAssembly.Module(Buffer.from(wasm, 'base64'))
    },
    importName: './query_compiler_small_bg.js',
  },
})

const prisma = (url: string): Client => {
  const db = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) })
  return {
    transaction: (work) =>
      db.$transaction((tx: Parameters<typeof viaPrisma>[0]) => work(viaPrisma(tx))),
    end: () => db.$disconnect(),
  }
}

/** Clients that take seconds to load. */
export const ORM_CLIENTS: typeof CLIENTS = [
  ['Prisma', prisma],
  ['TypeORM', typeorm],
  ['MikroORM', mikroOrm],
]
