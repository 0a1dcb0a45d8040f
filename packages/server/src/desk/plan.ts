import type { Action, Input } from '@redrive/api'
import type {
  Catalog,
  DeadLetterQuery,
  ReplayChange,
  ReplayRequest,
  ReplaySelection,
} from '@redrive/catalog'
import { Refusal } from '../access/refusal.ts'
import { deadLetterTag } from './etag.ts'
import { only } from './facts.ts'
import { changed } from './groups.ts'
import { type Deed, notFound } from './guard.ts'
import type { Handlers } from './handlers.ts'
import type { DeskParts } from './parts.ts'
import { present } from './present.ts'
import { shownRun } from './run.ts'
import { narrowedFor, valuesNeed } from './values.ts'

type Body = Input<'planReplay'>['body']

export function plan(parts: DeskParts): Handlers<'planReplay'> {
  return {
    async planReplay(caller, { body, ifMatch }, { request }) {
      const { change, selection, ...options } = present(body)
      const asked = { caller, what: 'planReplay' } as const
      const { chosen, ...about } = await choose(parts, asked, selection, actionsFor(change))
      const deed = { ...asked, ...about, facts: factsOf(body) }
      const work = async () => {
        const run = await parts.catalog.replays.plan({
          // The catalog reads durations itself, and says what is wrong with one.
          ...(options as Partial<ReplayRequest>),
          selection: chosen,
          by: caller.person,
          ...present({
            change: changeOf(change),
            request,
            seenVersion: await seenVersion(parts.catalog, body, ifMatch),
          }),
        })
        return shownRun(caller, run)
      }
      return parts.guard.mutate(deed, work, ({ id, source }) => ({ subject: id, source }))
    },
  }
}

/**
 * Who may not see bodies must not find out about them by a change either: a patch fails where the body has no
 * such place, and one that tests tells whether a value is this one, masked or not.
 */
function actionsFor(change: Body['change']): readonly Action[] {
  if (change === undefined) return ['replay']
  if (!('patch' in change)) return ['replay', 'edit']
  const isTesting = change.patch.some(({ op }) => op === 'test')
  return ['replay', 'edit', 'payload', ...(isTesting ? (['unmask'] as const) : [])]
}

interface Choice {
  readonly chosen: ReplaySelection
  readonly source?: string
  readonly subject?: string
}

/** The selection, with nothing in it that the caller may not replay. */
async function choose(
  parts: DeskParts,
  deed: Deed,
  selection: Body['selection'],
  actions: readonly Action[],
): Promise<Choice> {
  if ('group' in selection) {
    const source = await parts.guard.sourceOf(deed, 'group', selection.group, ...actions)
    return { chosen: selection, source, subject: selection.group }
  }
  if ('ids' in selection) return chooseIds(parts, deed, selection.ids, actions)
  const query = await chooseQuery(parts, deed, selection.query, actions)
  return { chosen: { query }, ...present({ source: only(query.sources) }) }
}

async function chooseIds(
  { catalog, guard }: DeskParts,
  deed: Deed,
  ids: readonly string[],
  actions: readonly Action[],
): Promise<Choice> {
  const sources = await catalog.sourcesOf('deadLetter', ids)
  for (const id of ids) {
    const source = sources.get(id)
    if (source === undefined) throw notFound('deadLetter')
    await guard.check({ ...deed, subject: id }, source, actions, 'deadLetter')
  }
  const [source] = sources.values()
  return { chosen: { ids }, ...present({ source }) }
}

type Query = Extract<Body['selection'], { query: unknown }>['query']

async function chooseQuery(
  parts: DeskParts,
  deed: Deed,
  query: Query,
  actions: readonly Action[],
): Promise<DeadLetterQuery> {
  const { sources: asked, ...rest } = present(query)
  const needed = [...actions, ...valuesNeed(rest)]
  for (const source of asked ?? []) await parts.guard.check(deed, source, needed)
  const sources = await narrowedFor(parts, deed, present(query), ...actions)
  if (sources?.length === 0) throw new Refusal('not_found', 'The selection has no dead letters.')
  return { ...rest, ...present({ sources }) } as DeadLetterQuery
}

/** An edit is of what someone looked at: what came back since is another one. */
async function seenVersion(
  catalog: Catalog,
  { change, selection }: Body,
  ifMatch: string | undefined,
): Promise<number | undefined> {
  if (change === undefined || !('edit' in change)) return undefined
  if (ifMatch === undefined) {
    const detail = "An edit needs the header 'If-Match' with the ETag of the dead letter."
    throw new Refusal('if_match_missing', detail)
  }
  const [id = ''] = 'ids' in selection ? selection.ids : []
  const found = await catalog.deadLetterPreview(id)
  if (found === undefined) throw notFound('deadLetter')
  if (deadLetterTag(found) !== ifMatch) throw changed()
  return found.version
}

function changeOf(change: Body['change']): ReplayChange | undefined {
  if (change === undefined || !('edit' in change)) return change as ReplayChange | undefined
  return { edit: Buffer.from(change.edit, 'base64') }
}

/** Which and how; of a change only its kind, because its values may be secret. */
function factsOf({ selection, change, ...options }: Body): Readonly<Record<string, unknown>> {
  const [kind] = Object.keys(change ?? {})
  return { selection, ...present({ ...options, change: kind }) }
}
