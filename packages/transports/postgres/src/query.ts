import { CompiledQuery } from 'kysely'

/**
 * All that is asked of a database client: run one statement with numbered parameters. A client of `pg`
 * is one as it is; `viaKysely` and its like make one of others.
 */
export interface Queryable {
  query(text: string, params: unknown[]): Promise<Rows | { readonly rows: Rows }>
}

type Rows = readonly unknown[]

export async function rowsOf<R>(
  client: Queryable,
  text: string,
  params: readonly unknown[],
): Promise<readonly R[]> {
  const answer = await client.query(text, [...params])
  return ('rows' in answer ? answer.rows : answer) as readonly R[]
}

/** A transaction of Kysely. */
export function viaKysely(trx: {
  executeQuery(query: CompiledQuery): Promise<{ readonly rows: Rows }>
}): Queryable {
  return { query: (text, params) => trx.executeQuery(CompiledQuery.raw(text, params)) }
}

/** A transaction of postgres.js. */
export function viaPostgresJs(sql: {
  // Its parameters are typed by the database's own types, which cannot be named here.
  unsafe(text: string, params: never[]): PromiseLike<Rows>
}): Queryable {
  return { query: async (text, params) => sql.unsafe(text, params as never[]) }
}

/** A transaction of Knex, which numbers parameters by their place. */
export function viaKnex(trx: {
  raw(text: string, bindings: never[]): PromiseLike<unknown>
}): Queryable {
  return {
    async query(text, params) {
      const { texts, values } = split(text, params)
      return (await trx.raw(texts.join('?'), values as never[])) as { readonly rows: Rows }
    },
  }
}

/** A transaction of Drizzle, and its own `sql`. */
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
      return (await tx.execute(sql.join(chunks as never[]))) as { readonly rows: Rows }
    },
  }
}

/** The text around its parameters, and the value of each in the order they appear. */
function split(
  text: string,
  params: readonly unknown[],
): { readonly texts: readonly string[]; readonly values: readonly unknown[] } {
  const values = [...text.matchAll(/\$(\d+)/g)].map(([, number]) => params[Number(number) - 1])
  return { texts: text.split(/\$\d+/), values }
}
