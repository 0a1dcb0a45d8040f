import type { Input } from '@redrive/api'
import type { Action } from '@redrive/api/enums'
import type {
  Catalog,
  PatchOperation,
  ReplayChange,
  ReplayRequest,
  ReplaySelection,
} from '@redrive/catalog'
import { ProblemError } from '../access/problem-error.ts'
import { deadLetterTag } from './etag.ts'
import { auditedFilter, only, type SealValue } from './audit-facts.ts'
import { changed } from './groups.ts'
import { type AuditedAction, notFound } from './authorize.ts'
import type { Handlers } from './handlers.ts'
import type { OperationDeps } from './context.ts'
import { canRevealMasked } from './masked-values.ts'
import { omitUndefined } from './present.ts'
import { approvalReader, withApproval } from './run-approval.ts'
import { runView } from './run-view.ts'
import { selectionQuery } from './selection-query.ts'

type Body = Input<'planReplay'>['body']

export function plan(parts: OperationDeps): Handlers<'planReplay'> {
  return {
    async planReplay(caller, { body, ifMatch }, { request }) {
      const { change, selection, ...options } = omitUndefined(body)
      const action = { caller, operation: 'planReplay' } as const
      const { chosen, sources, ...about } = await choose(
        parts,
        action,
        selection,
        actionsFor(change),
      )
      await checkMasked(parts, { ...action, ...about }, change, sources)
      const audited = { ...action, ...about, facts: await factsOf(parts.sealValue, body) }
      const work = async () => {
        const run = await parts.catalog.replays.plan({
          // The catalog parses durations and reports invalid ones.
          ...(options as Partial<ReplayRequest>),
          selection: chosen,
          by: caller.person,
          ...omitUndefined({
            change: changeOf(change),
            request,
            seenVersion: await seenVersion(parts.catalog, body, ifMatch),
          }),
        })
        return withApproval(runView(parts.reading, caller, run), approvalReader(parts, run.id))
      }
      return parts.guard.mutate(audited, work, ({ id, source }) => ({ subject: id, source }))
    },
  }
}

/**
 * Returns the permissions for a change. A patch reveals whether a path exists in the body, so it requires "view_payload".
 * A `test` operation reveals whether a value matches, even a masked one, so it also requires "view_unmasked". Operations
 * that move masked values require it, too: see `checkMasked`.
 */
function actionsFor(change: Body['change']): readonly Action[] {
  if (change === undefined) return ['replay']
  if (!('patch' in change)) return ['replay', 'edit']
  const isTesting = change.patch.some(({ op }) => op === 'test')
  return ['replay', 'edit', 'view_payload', ...(isTesting ? (['view_unmasked'] as const) : [])]
}

/** Checks that a patch shows no masked values to a caller who may not see them, in each source of the selection. */
async function checkMasked(
  { guard, reading }: OperationDeps,
  audited: AuditedAction,
  change: Body['change'],
  sources: readonly string[] = reading.sources,
): Promise<void> {
  if (change === undefined || !('patch' in change)) return
  const patch = change.patch as readonly PatchOperation[]
  for (const source of sources) {
    if (canRevealMasked(patch, reading.masks(source)))
      await guard.check(audited, source, ['view_unmasked'])
  }
}

interface Choice {
  readonly chosen: ReplaySelection
  /** The sources of the selected dead letters. Undefined: all sources. */
  readonly sources: readonly string[] | undefined
  readonly source?: string
  readonly subject?: string
}

/** Checks the selection and limits it to what the caller can replay. */
async function choose(
  parts: OperationDeps,
  audited: AuditedAction,
  selection: Body['selection'],
  actions: readonly Action[],
): Promise<Choice> {
  if ('group' in selection) {
    const source = await parts.guard.sourceOf(audited, 'group', selection.group, ...actions)
    return { chosen: selection, sources: [source], source, subject: selection.group }
  }
  if ('ids' in selection) return chooseIds(parts, audited, selection.ids, actions)
  const query = await selectionQuery(parts, audited, selection.filter, actions)
  return {
    chosen: { query },
    sources: query.sources,
    ...omitUndefined({ source: only(query.sources) }),
  }
}

async function chooseIds(
  { catalog, guard }: OperationDeps,
  audited: AuditedAction,
  ids: readonly string[],
  actions: readonly Action[],
): Promise<Choice> {
  const sources = await catalog.sourcesOf('deadLetter', ids)
  for (const id of ids) {
    const source = sources.get(id)
    if (source === undefined) throw notFound('deadLetter')
    await guard.check({ ...audited, subject: id }, source, actions, 'deadLetter')
  }
  const names = [...new Set(sources.values())]
  return { chosen: { ids }, sources: names, ...omitUndefined({ source: names[0] }) }
}

/** Returns the version that the caller read. An edit is only valid for this version. */
async function seenVersion(
  catalog: Catalog,
  { change, selection }: Body,
  ifMatch: string | undefined,
): Promise<number | undefined> {
  if (change === undefined || !('edit' in change)) return undefined
  if (ifMatch === undefined) {
    const detail = "An edit requires the header 'If-Match' with the ETag of the dead letter."
    throw new ProblemError('if_match_missing', detail)
  }
  const [id = ''] = 'ids' in selection ? selection.ids : []
  const found = await catalog.deadLetterPreview(id)
  if (found === undefined) throw notFound('deadLetter')
  if (deadLetterTag(found) !== ifMatch) throw changed('dead letter')
  return found.version
}

function changeOf(change: Body['change']): ReplayChange | undefined {
  if (change === undefined || !('edit' in change)) return change as ReplayChange | undefined
  return { edit: Buffer.from(change.edit, 'base64') }
}

/** Returns the audit facts of a plan. They contain only the kind of a change, because its values may be secret. */
async function factsOf(
  seal: SealValue,
  { selection, change, ...options }: Body,
): Promise<Readonly<Record<string, unknown>>> {
  const [kind] = Object.keys(change ?? {})
  const selected =
    'filter' in selection ? { filter: await auditedFilter(seal, selection.filter) } : selection
  return { selection: selected, ...omitUndefined({ ...options, change: kind }) }
}
