import type { Pool } from 'pg'
import { query } from '../../database.ts'
import { NAME_MAX, storable } from '../../text.ts'
import { conflict } from '../run/lifecycle.ts'
import { refused } from './plan.ts'
import { Validator } from './schema-validator.ts'
import { STORE_SCHEMA } from './statements.ts'

/** A schema of a schema library that can return its JSON Schema (the Standard JSON Schema interface). */
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
  /** Event type. Default: all types without a separate schema. */
  readonly type?: string
  /** A JSON Schema, or a schema of a library that can return one. */
  readonly schema: StandardJsonSchema | Readonly<Record<string, unknown>>
}

/** 1 MiB: every plan reads the schemas. */
const SCHEMA_MAX = 1_048_576

export async function setSchema(
  pool: Pool,
  { source, type = '', schema }: SchemaOf,
): Promise<void> {
  const plain = isStandard(schema)
    ? schema['~standard'].jsonSchema.input({ target: 'draft-2020-12' })
    : schema
  const text = JSON.stringify(plain)
  if (text.length > SCHEMA_MAX) throw refused(`schema: expected at most ${SCHEMA_MAX} characters`)
  await checkSchema(plain)
  const values = [storable(source, NAME_MAX), storable(type, NAME_MAX), text]
  const { rowCount } = await query(pool, STORE_SCHEMA, values)
  if (rowCount === 0) {
    throw conflict(
      `The catalog has no source "${source}". Check the name. A new source exists after its first ingest.`,
    )
  }
}

/** Compiles the schema once, so that the caller gets its errors now. */
async function checkSchema(schema: unknown): Promise<void> {
  const validator = new Validator(new Map([['', schema]]), Number.POSITIVE_INFINITY)
  try {
    await validator.problemOf(null, null)
  } finally {
    await validator.close()
  }
}

const isStandard = (schema: SchemaOf['schema']): schema is StandardJsonSchema =>
  '~standard' in schema
