import type { Pool } from 'pg'
import { query } from '../database.ts'
import { NAME_MAX, storable } from '../text.ts'
import { conflict } from './lifecycle.ts'
import { refused } from './plan.ts'
import { Validator } from './validator.ts'

/** A schema library's own schema that can tell its JSON Schema (the Standard JSON Schema interface). */
export interface StandardJsonSchema {
  readonly '~standard': {
    readonly jsonSchema: {
      readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>
    }
  }
}

export interface SchemaOf {
  /** Name of the source in the catalog. */
  readonly source: string
  /** Type of event. Default: all that have no schema of their own. */
  readonly type?: string
  /** A JSON Schema, or a schema of a library that can tell its own. */
  readonly schema: StandardJsonSchema | Readonly<Record<string, unknown>>
}

const KEEP = `
insert into redrive_catalog.source_schema (source_id, type, schema)
  select id, $2, $3 from redrive_catalog.source where name = $1
  on conflict (source_id, type) do update set schema = excluded.schema, captured_at = now()
  returning source_id`

/** 1 MiB: a schema is read whenever a run is planned. */
const SCHEMA_MAX = 1_048_576

export async function keepSchema(
  pool: Pool,
  { source, type = '', schema }: SchemaOf,
): Promise<void> {
  const plain = isStandard(schema)
    ? schema['~standard'].jsonSchema.input({ target: 'draft-2020-12' })
    : schema
  const text = JSON.stringify(plain)
  if (text.length > SCHEMA_MAX) throw refused(`schema: expected at most ${SCHEMA_MAX} characters`)
  await usable(plain)
  const values = [storable(source, NAME_MAX), storable(type, NAME_MAX), text]
  const { rowCount } = await query(pool, KEEP, values)
  if (rowCount === 0) {
    throw conflict(`There is no source '${source}' yet. It is known after its first ingest.`)
  }
}

/** Compiled once now, so that whoever keeps it hears what is wrong with it. */
async function usable(schema: unknown): Promise<void> {
  const validator = new Validator(new Map([['', schema]]))
  try {
    await validator.problemOf(null, null)
  } finally {
    await validator.close()
  }
}

const isStandard = (schema: SchemaOf['schema']): schema is StandardJsonSchema =>
  '~standard' in schema
