import { generateKeyPairSync } from 'node:crypto'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Pool } from 'pg'
import { hashOf, type Link } from '../src/audit/chain.ts'
import type { NewEntry } from '../src/audit/entry.ts'

export const { privateKey, publicKey } = generateKeyPairSync('ed25519')

export const checkpointFile = async () =>
  join(await mkdtemp(join(tmpdir(), 'redrive-audit-')), 'checkpoints.jsonl')

export const entry = (changes: Partial<NewEntry> = {}): NewEntry => ({
  caller: {
    person: 'https://idp.test#alice',
    name: 'Alice',
    via: 'session',
    grants: [],
    isAgent: false,
    credential: undefined,
  },
  operation: 'discard',
  outcome: 'done',
  source: 'orders',
  subject: 'a dead letter',
  facts: { count: 1 },
  ...changes,
})

/** Changes tables with disabled triggers, as the owner of the database can. */
export async function tamper(pool: Pool, ...statements: readonly string[]): Promise<void> {
  await pool.query(
    [
      'begin',
      'alter table redrive_server.audit disable trigger all',
      'alter table redrive_server.audit_head disable trigger all',
      ...statements,
      'alter table redrive_server.audit enable always trigger audit_kept',
      'alter table redrive_server.audit_head enable always trigger audit_head_kept',
      'alter table redrive_server.audit_head enable always trigger audit_head_grows',
      'commit',
    ].join(';\n'),
  )
}

/** Computes all hashes again, so that the chain is consistent. */
export async function rehash(pool: Pool): Promise<void> {
  const { rows } = await pool.query<Link & { at_ms: string }>(
    'select * from redrive_server.audit order by sequence',
  )
  let previous = '0'.repeat(64)
  const statements = rows.map((row) => {
    const sequence = Number(row.sequence)
    const hash = hashOf({ ...row, sequence, at: Number(row.at_ms) }, previous)
    const set = `previous = decode('${previous}', 'hex'), hash = decode('${hash}', 'hex')`
    previous = hash
    return `update redrive_server.audit set ${set} where sequence = ${sequence}`
  })
  const last = Number(rows.at(-1)?.sequence ?? 0)
  const head = `update redrive_server.audit_head set sequence = ${last}, hash = decode('${previous}', 'hex')`
  await tamper(pool, ...statements, head)
}
