import { randomUUID } from 'node:crypto'

/**
 * A database client that runs one statement with numbered parameters. A client of `pg` and an entity manager of
 * TypeORM implement it directly; `viaKysely` and the other functions adapt other clients.
 */
export interface Queryable {
  query(
    text: string,
    params: unknown[],
  ): Promise<readonly unknown[] | { readonly rows: readonly unknown[] }>
}

export async function rowsOf<R>(
  client: Queryable,
  text: string,
  params: readonly unknown[],
): Promise<readonly R[]> {
  const answer = await client.query(text, [...params])
  return ('rows' in answer ? answer.rows : answer) as readonly R[]
}

/** Adapts a transaction of Kysely. */
export function viaKysely(trx: {
  executeQuery(query: KyselyQuery): Promise<{ readonly rows: readonly unknown[] }>
}): Queryable {
  return {
    query: (sql, parameters) =>
      trx.executeQuery({
        sql,
        parameters,
        query: { kind: 'RawNode', sqlFragments: [sql], parameters: [] },
        queryId: { queryId: randomUUID() },
      }),
  }
}

/** A `CompiledQuery` of Kysely. It is declared here, so that only users of Kysely install it. */
export interface KyselyQuery {
  readonly sql: string
  readonly parameters: readonly unknown[]
  readonly query: {
    readonly kind: 'RawNode'
    readonly sqlFragments: readonly string[]
    readonly parameters: readonly never[]
  }
  readonly queryId: { readonly queryId: string }
}

/** Adapts a transaction of postgres.js. */
export function viaPostgresJs(sql: {
  // Its parameters are typed by types of the database, which cannot be named here.
  unsafe(text: string, params: never[]): PromiseLike<readonly unknown[]>
}): Queryable {
  return { query: async (text, params) => sql.unsafe(text, params as never[]) }
}

/** Adapts a transaction of Knex, whose parameters are positional. */
export function viaKnex(trx: {
  raw(text: string, bindings: never[]): PromiseLike<unknown>
}): Queryable {
  return {
    async query(text, params) {
      const { texts, values } = split(text, params)
      return (await trx.raw(texts.join('?'), values as never[])) as {
        readonly rows: readonly unknown[]
      }
    },
  }
}

/** Adapts a transaction of Drizzle, with its `sql` function. */
export function viaDrizzle<Chunk>(
  tx: { execute(query: Chunk): PromiseLike<unknown> },
  sql: {
    raw(text: string): NoInfer<Chunk>
    param(value: unknown): unknown
    join(chunks: never[]): Chunk
  },
): Queryable {
  return {
    async query(text, params) {
      const { texts, values } = split(text, params)
      const chunks = texts.flatMap((part, index) =>
        index === 0 ? [sql.raw(part)] : [sql.param(values[index - 1]), sql.raw(part)],
      )
      return (await tx.execute(sql.join(chunks as never[]))) as {
        readonly rows: readonly unknown[]
      }
    },
  }
}

/** Adapts a transaction of Prisma: the client that `$transaction` passes. */
export function viaPrisma(tx: {
  $queryRawUnsafe(text: string, ...values: unknown[]): PromiseLike<unknown>
}): Queryable {
  return {
    query: async (text, params) =>
      (await tx.$queryRawUnsafe(text, ...params)) as readonly unknown[],
  }
}

/** Adapts a transaction of MikroORM: the entity manager that `transactional` passes. */
export function viaMikroOrm(em: {
  execute(text: string, params: unknown[]): PromiseLike<unknown>
}): Queryable {
  return {
    async query(text, params) {
      const { texts, values } = split(text, params)
      return (await em.execute(texts.join('?'), [...values])) as readonly unknown[]
    },
  }
}

/** Splits the text at its parameters, and returns their values in the order they appear. */
function split(
  text: string,
  params: readonly unknown[],
): { readonly texts: readonly string[]; readonly values: readonly unknown[] } {
  const values = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => params[Number(number) - 1])
  return { texts: text.split(/\$\d+/), values }
}
