/** One interface for the packages that query PostgreSQL. */
import knexOf, { type Knex } from 'knex'
import { Sequelize } from 'sequelize'
import { DataSource } from 'typeorm'
import { PrismaPg } from '@prisma/adapter-pg'
import { createPrisma } from './prisma.ts'

export type Run = (sql: string) => Promise<unknown>

export interface Database {
  readonly run: Run
  readonly transaction: (work: (run: Run) => Promise<unknown>) => Promise<unknown>
  readonly close: () => Promise<unknown>
}

export interface OpenOptions {
  readonly maxConnections: number
  /** Longest time to open a connection. */
  readonly connectMs: number
  /** Longest time to wait for a connection of the pool. */
  readonly acquireMs: number
}

export type Open = (url: string, options: OpenOptions) => Promise<Database>

const silent = () => undefined

/** Runs SQL with knex or one of its transactions. */
const rawOf =
  (knex: Knex): Run =>
  async (sql) => {
    const result: unknown = await knex.raw(sql)
    return result
  }

const openKnex: Open = async (url, { maxConnections, connectMs, acquireMs }) => {
  const knex = knexOf({
    client: 'pg',
    connection: { connectionString: url, connectionTimeoutMillis: connectMs },
    pool: { min: 0, max: maxConnections },
    acquireConnectionTimeout: acquireMs,
    log: { warn: silent, error: silent, debug: silent, deprecate: silent },
  })
  return {
    run: rawOf(knex),
    transaction: (work) => knex.transaction((inner) => work(rawOf(inner))),
    close: () => knex.destroy(),
  }
}

const openSequelize: Open = async (url, { maxConnections, connectMs, acquireMs }) => {
  const sequelize = new Sequelize(url, {
    dialect: 'postgres',
    logging: false,
    pool: { max: maxConnections, acquire: acquireMs },
    dialectOptions: { connectionTimeoutMillis: connectMs },
  })
  return {
    run: (sql) => sequelize.query(sql),
    transaction: (work) =>
      sequelize.transaction((transaction) => work((sql) => sequelize.query(sql, { transaction }))),
    close: () => sequelize.close(),
  }
}

const openTypeOrm: Open = async (url, { maxConnections, connectMs, acquireMs }) => {
  const source = new DataSource({
    type: 'postgres',
    url,
    poolSize: maxConnections,
    connectTimeoutMS: Math.min(connectMs, acquireMs),
    poolErrorHandler: silent,
  })
  await source.initialize()
  return {
    run: (sql) => source.query(sql),
    transaction: (work) => source.transaction((manager) => work((sql) => manager.query(sql))),
    close: () => source.destroy(),
  }
}

const openPrisma: Open = async (connectionString, { maxConnections, connectMs, acquireMs }) => {
  const connectionTimeoutMillis = Math.min(connectMs, acquireMs)
  const adapter = new PrismaPg({ connectionString, max: maxConnections, connectionTimeoutMillis })
  const prisma = createPrisma(adapter, acquireMs)
  return {
    run: (sql) => prisma.$executeRawUnsafe(sql),
    transaction: (work) =>
      prisma.$transaction((inner) => work((sql) => inner.$executeRawUnsafe(sql))),
    close: () => prisma.$disconnect(),
  }
}

export const DATABASES = {
  '@prisma/client': openPrisma,
  knex: openKnex,
  sequelize: openSequelize,
  typeorm: openTypeOrm,
} as const satisfies Readonly<Record<string, Open>>
