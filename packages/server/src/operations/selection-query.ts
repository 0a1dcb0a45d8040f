import type { Action } from '@redrive/api/enums'
import type { DeadLetterQuery } from '@redrive/catalog'
import { ProblemError } from '../access/problem-error.ts'
import type { AuditedAction } from './authorize.ts'
import type { OperationDeps } from './context.ts'
import { readSelectionFilter } from './filter.ts'
import { narrowedFor, valuesNeed } from './payload-filters.ts'
import { omitUndefined } from './present.ts'

/** Parses the filter of a selection and limits it to the sources where the caller has these permissions. */
export async function selectionQuery(
  parts: OperationDeps,
  audited: AuditedAction,
  filter: string,
  actions: readonly Action[],
): Promise<DeadLetterQuery> {
  const wanted = readSelectionFilter(filter)
  for (const source of wanted.sources ?? []) {
    const needed = [...actions, ...valuesNeed(parts.reading, source, wanted)]
    await parts.guard.check(audited, source, needed)
  }
  const sources = await narrowedFor(parts, audited, wanted, ...actions)
  if (sources?.length === 0)
    throw new ProblemError('not_found', 'The selection contains no dead letters.')
  return { ...wanted, ...omitUndefined({ sources }) }
}
