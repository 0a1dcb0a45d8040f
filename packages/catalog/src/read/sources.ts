import { isId } from './check.ts'
import { ask, type Reader } from './sql.ts'

/** What has a source. */
export type Sourced = 'deadLetter' | 'group' | 'run'

const TABLES: Readonly<Record<Sourced, string>> = {
  deadLetter: 'dead_letter',
  group: 'failure_group',
  run: 'replay_run',
}

/** In the order of their names. */
export async function readSourceNames(reader: Reader): Promise<readonly string[]> {
  const text = 'select name from redrive_catalog.source order by name'
  const rows = await ask<{ name: string }>(reader, { text, values: [] })
  return rows.map(({ name }) => name)
}

/** The source of each; those that are not there are not in the answer. */
export async function readSourcesOf(
  reader: Reader,
  kind: Sourced,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const text = `select o.id, s.name from redrive_catalog.${TABLES[kind]} o
    join redrive_catalog.source s on s.id = o.source_id where o.id = any($1::uuid[])`
  const values = [ids.filter(isId)]
  const rows = await ask<{ id: string; name: string }>(reader, { text, values })
  return new Map(rows.map(({ id, name }) => [id, name]))
}
