import { hash } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { explained, inReading, isPlanLost, type Run } from '../database.ts'

/** A statement and its values. Text of the caller is a value, never part of the statement. */
export interface Statement {
  readonly text: string
  readonly values: readonly unknown[]
}

/** Collects values and answers the place of each. */
export class Values {
  readonly all: unknown[] = []

  add(value: unknown, type: string): string {
    return `$${this.all.push(value)}::${type}`
  }
}

export const momentSql = (at: string): string => `to_timestamp(${at} / 1000.0)`
export const msSql = (column: string): string =>
  `(extract(epoch from ${column}) * 1000)::bigint::float8`

/** Part of a text, whatever characters it has. */
export const containing = (text: string): string => `%${text.replace(/[\\%_]/g, '\\$&')}%`

/** Reads in one transaction that cannot write and cannot take longer than that for each statement. */
export async function reading<T>(
  { pool, timeoutMs }: Reader,
  work: (run: Run) => Promise<T>,
): Promise<T> {
  // Indexed plans only: those do not depend on what statistics say, or whether there are any yet.
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

/** A pooler between us and the server may give us another connection each time, which knows no plans of ours. */
let arePlansKept = true

/** 32: what people ask has a few shapes, and each is kept by every connection. */
const PLANS_MAX = 32
const names = new Map<string, string>()

/** Planning a page takes longer than reading it: there is an index of each day to think about. */
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

/** Where a page ends: a number and an id. */
export interface Cursor {
  readonly at: number
  readonly id: string
}

const CURSOR = /^(-?\d{1,16})_([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/

export const cursorText = ({ at, id }: Cursor): string => `${at}_${id}`

export function readCursor(next: string | undefined): Cursor | undefined {
  if (next === undefined) return undefined
  const [, at, id] = CURSOR.exec(next) ?? []
  if (at !== undefined && id !== undefined) return { at: Number(at), id }
  throw new RedriveError('POLICY_INVALID', 'next: expected what the page before gave', {
    problems: ['next: expected what the page before gave'],
  })
}
