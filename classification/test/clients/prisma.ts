/**
 * A Prisma client without its generator, which downloads programs. The generator would write the same configuration for
 * this schema, and types.
 */
import { createRequire } from 'node:module'
import type { PrismaPg } from '@prisma/adapter-pg'
import { type GetPrismaClientConfig, getPrismaClient } from '@prisma/client/runtime/client'
import { PATIENCE_MS } from '../site.ts'

interface Raw {
  readonly $executeRawUnsafe: (sql: string) => Promise<unknown>
}

export interface Prisma extends Raw {
  readonly account: {
    readonly create: (input: { readonly data: object }) => Promise<unknown>
    readonly findFirst: () => Promise<unknown>
  }
  readonly $transaction: (work: (inner: Raw) => Promise<unknown>) => Promise<unknown>
  readonly $disconnect: () => Promise<void>
}

const SCHEMA = `
generator client {
  provider = "prisma-client"
}
datasource db {
  provider = "postgresql"
}
model Account {
  id    Int    @id
  email String @unique
  @@map("accounts")
}
`

const require = createRequire(import.meta.url)
const COMPILER = '@prisma/client/runtime/query_compiler_small_bg.postgresql'
type CompilerLoading = NonNullable<GetPrismaClientConfig['compilerWasm']>
type CompilerRuntime = Awaited<ReturnType<CompilerLoading['getRuntime']>>

const CONFIG: GetPrismaClientConfig = {
  previewFeatures: [],
  clientVersion: '7.10.0',
  engineVersion: '7.10.0',
  activeProvider: 'postgresql',
  inlineSchema: SCHEMA,
  runtimeDataModel: {
    models: {
      Account: {
        dbName: 'accounts',
        schema: null,
        fields: [
          { name: 'id', kind: 'scalar', type: 'Int' },
          { name: 'email', kind: 'scalar', type: 'String' },
        ],
        uniqueFields: [],
        uniqueIndexes: [],
        primaryKey: null,
      },
    },
    enums: {},
    types: {},
  } as unknown as GetPrismaClientConfig['runtimeDataModel'],
  // An empty graph: no value of a query becomes a parameter of a cached plan.
  parameterizationSchema: { strings: [], graph: Buffer.alloc(64).toString('base64url') },
  compilerWasm: {
    getRuntime: async () => require(`${COMPILER}.js`) as CompilerRuntime,
    getQueryCompilerWasmModule: async () => {
      const { wasm } = require(`${COMPILER}.wasm-base64.js`) as { readonly wasm: string }
      return new WebAssembly.Module(Buffer.from(wasm, 'base64'))
    },
    importName: './query_compiler_small_bg.js',
  },
}

const PrismaClient = getPrismaClient(CONFIG)

export function createPrisma(adapter: PrismaPg, maxWait: number): Prisma {
  const transactionOptions = { maxWait, timeout: PATIENCE_MS }
  return new PrismaClient({ adapter, transactionOptions }) as unknown as Prisma
}
