import { isId } from './check.ts'
import { ask, type Reader } from './sql.ts'
import { SOURCE_NAMES, SOURCES_OF } from './statements.ts'

/** A kind of resource that belongs to a source. */
export type ResourceKind = 'deadLetter' | 'group' | 'run' | 'setAside'

/** Returns all source names in alphabetical order. */
export async function readSourceNames(reader: Reader): Promise<readonly string[]> {
  const rows = await ask<{ name: string }>(reader, { text: SOURCE_NAMES, values: [] })
  return rows.map(({ name }) => name)
}

/** Returns the source name of each id. Ids that do not exist are left out. */
export async function readSourcesOf(
  reader: Reader,
  kind: ResourceKind,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const statement = { text: SOURCES_OF[kind], values: [ids.filter(isId)] }
  const rows = await ask<{ id: string; name: string }>(reader, statement)
  return new Map(rows.map(({ id, name }) => [id, name]))
}
