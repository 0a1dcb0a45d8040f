import { hash } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { isTimestamp } from './check.ts'
import { explained, inReading, isPlanLost, type RunSql } from '../database.ts'

/** A statement and its values. Text from the caller is always a value and never part of the statement. */
export interface Statement {
  readonly text: string
  readonly values: readonly unknown[]
}

/** Collects values and returns the placeholder of each. */
export class Values {
  readonly all: unknown[] = []

  add(value: unknown, type: string): string {
    return `$${this.all.push(value)}::${type}`
  }
}

export const momentSql = (at: string): string => `to_timestamp(${at} / 1000.0)`
export const msSql = (column: string): string =>
  `(extract(epoch from ${column}) * 1000)::bigint::float8`

/** Returns a LIKE pattern for texts that contain this text. Special characters are escaped. */
export const containing = (text: string): string => `%${text.replace(/[\\%_]/g, '\\$&')}%`

/** Runs `work` in one read-only transaction, with a time limit for each statement. */
export async function reading<T>(
  { pool, timeoutMs }: Reader,
  work: (run: RunSql) => Promise<T>,
): Promise<T> {
  // Forces index plans, because they do not depend on table statistics, which may be missing or old.
  const settings = `set local statement_timeout = ${timeoutMs};
    set local enable_seqscan = off; set local enable_bitmapscan = off; set local jit = off;
    set local plan_cache_mode = force_generic_plan`
  try {
    return await inReading(pool, work, settings, arePlansKept ? planName : undefined)
  } catch (error) {
    if (!arePlansKept || !isPlanLost(error)) throw explained(error)
    arePlansKept = false
    return reading({ pool, timeoutMs }, work)
  }
}

/** False with a pooler that switches connections: prepared plans of one connection are missing on the next. */
let arePlansKept = true

/** 32: queries have few different texts, and every connection keeps a plan for each. */
const PLANS_MAX = 32
const names = new Map<string, string>()

/** Returns the name for a prepared plan. Planning a page takes longer than reading it: each day has its own index. */
function planName(text: string): string | undefined {
  const known = names.get(text)
  if (known !== undefined || names.size >= PLANS_MAX) return known
  const name = `redrive_catalog_${hash('sha256', text).slice(0, 16)}`
  names.set(text, name)
  return name
}

export interface Reader {
  readonly pool: Pool
  readonly timeoutMs: number
}

export async function ask<R>(reader: Reader, { text, values }: Statement): Promise<readonly R[]> {
  return reading(reader, (run) => run<R>(text, values))
}

/** The end of a page: a sort value and an id. */
export interface Cursor {
  readonly at: number
  readonly id: string
}

const CURSOR = /^(-?\d{1,16})_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

export const cursorText = ({ at, id }: Cursor): string => `${at}_${id}`

export function readCursor(next: string | undefined): Cursor | undefined {
  if (next === undefined) return undefined
  const [, at, id] = CURSOR.exec(next) ?? []
  if (id !== undefined && isTimestamp(Number(at))) return { at: Number(at), id }
  const problem = 'cursor: expected "nextCursor" of the previous page'
  throw new RedriveError('POLICY_INVALID', problem, { problems: [problem] })
}
