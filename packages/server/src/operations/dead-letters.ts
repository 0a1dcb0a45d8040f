import type { Output, Input } from '@redrive/api'
import type { Action } from '@redrive/api/enums'
import type { DeadLetterQuery } from '@redrive/catalog'
import { allows } from '../access/allow.ts'
import { ProblemError } from '../access/problem-error.ts'
import { auditedFilter, only } from './audit-facts.ts'
import { type AuditedAction, notFound } from './authorize.ts'
import type { Handlers } from './handlers.ts'
import type { OperationDeps } from './context.ts'
import { PiecewiseOutput } from './piecewise.ts'
import { omitUndefined } from './present.ts'
import { narrowedFor } from './payload-filters.ts'
import { readFilter } from './filter.ts'
import { shownCycle, shownDeadLetter, shownItem } from './shown.ts'

type DeadLetters =
  | 'listDeadLetters'
  | 'exportDeadLetters'
  | 'getDeadLetter'
  | 'getPayload'
  | 'listCycles'
  | 'listDeadLetterReplays'
  | 'listDeadLetterComments'
  | 'commentDeadLetter'

export function deadLetters(parts: OperationDeps): Handlers<DeadLetters> {
  const { catalog, guard, reading } = parts
  return {
    async listDeadLetters(caller, { query = {} }) {
      const allowed = await queryOf(parts, { caller, operation: 'listDeadLetters' }, query)
      if (allowed === undefined) return { deadLetters: [] }
      const { deadLetters: found, nextCursor, searchedTo } = await catalog.deadLetters(allowed)
      return {
        deadLetters: found.map((one) => shownDeadLetter(reading, one)),
        nextCursor,
        searchedTo,
      }
    },

    async exportDeadLetters(caller, { query = {} }, { signal }) {
      const audited = { caller, operation: 'exportDeadLetters' } as const
      const { sources = [] } = readFilter(query.filter ?? '')
      for (const source of sources) await guard.check(audited, source, ['export'])
      const allowed = await queryOf(parts, audited, query, 'export')
      const of = omitUndefined({ source: only(allowed?.sources) })
      const facts = {
        filter: await auditedFilter(parts.sealValue, query.filter ?? ''),
        ...omitUndefined({ sources: allowed?.sources }),
      }
      await guard.seen({ ...audited, ...of, facts })
      return allowed === undefined ? emptyExport() : exportAll(parts, allowed, signal)
    },

    async getDeadLetter(caller, { params: { id } }) {
      const audited = { caller, operation: 'getDeadLetter', subject: id } as const
      const source = await guard.sourceOf(audited, 'deadLetter', id)
      const isHidden = !allows(caller, 'view_payload', source)
      const found = await catalog.deadLetterPreview(id)
      if (found === undefined) throw notFound('deadLetter')
      if (!isHidden) await guard.seen({ ...audited, source })
      const body = { isHidden, ...(isHidden ? {} : reading.body(source, found)) }
      return { ...shownDeadLetter(reading, found), body }
    },

    async getPayload(caller, { params: { id }, query: { cycle, reason } }) {
      const facts = { reason, ...omitUndefined({ cycle }) }
      const audited = { caller, operation: 'getPayload', subject: id, facts } as const
      const source = await guard.sourceOf(audited, 'deadLetter', id, 'view_unmasked')
      const found =
        cycle === undefined ? await catalog.payload(id) : await catalog.beforeEdit(id, cycle)
      if (found === undefined) throw cycle === undefined ? notFound('deadLetter') : notEdited(cycle)
      await guard.unmask({ ...audited, source })
      const { headers, key, contentType } = found.drained.delivery
      const fields = { headers: { ...headers }, key, contentType }
      return new PiecewiseOutput(fields, found.pieces, { withText: true })
    },

    async listCycles(caller, { params: { id } }) {
      const audited = { caller, operation: 'listCycles', subject: id } as const
      const source = await guard.sourceOf(audited, 'deadLetter', id)
      const isHidden = !allows(caller, 'view_payload', source)
      const found = await catalog.cycles(id)
      if (!isHidden && found.some(({ isEdited }) => isEdited))
        await guard.seen({ ...audited, source })
      return { cycles: found.map((one) => shownCycle(reading, source, one, isHidden)) }
    },

    async listDeadLetterReplays(caller, { params: { id } }) {
      await guard.sourceOf({ caller, operation: 'listDeadLetterReplays' }, 'deadLetter', id)
      const items = await catalog.replays.items({ deadLetter: id })
      return { items: items.map((one) => shownItem(reading, one)) }
    },

    async listDeadLetterComments(caller, { params: { id } }) {
      await guard.sourceOf({ caller, operation: 'listDeadLetterComments' }, 'deadLetter', id)
      return { comments: [...(await catalog.comments(id))] }
    },

    async commentDeadLetter(caller, { params: { id }, body: { text } }) {
      const audited = { caller, operation: 'commentDeadLetter', subject: id } as const
      const source = await guard.sourceOf(audited, 'deadLetter', id, 'triage')
      const comment = { author: caller.person, text }
      await guard.mutate({ ...audited, source }, () => catalog.comment(id, comment))
    },
  }
}

type Query = NonNullable<Input<'listDeadLetters'>['query']>

/** Parses a query and limits it to the caller's sources. Returns undefined if none is left. */
async function queryOf(
  parts: OperationDeps,
  audited: AuditedAction,
  { filter = '', ...page }: Query,
  ...actions: readonly Action[]
): Promise<DeadLetterQuery | undefined> {
  const wanted = readFilter(filter)
  const sources = await narrowedFor(parts, audited, wanted, ...actions)
  if (sources?.length === 0) return undefined
  return { ...wanted, ...omitUndefined({ ...page, sources }) }
}

const notEdited = (cycle: number) =>
  new ProblemError(
    'not_found',
    `No body of cycle ${cycle} is kept, because no replay of it edited the body. Leave out "cycle".`,
  )

/** 100,000 dead letters: a spreadsheet can open this many. */
const EXPORT_MAX = 100_000
/** 200: the largest page of the catalog. */
const EXPORT_PAGE = 200

/** Yields all matching dead letters. An incomplete export ends with an error, so that users do not rely on the file. */
async function* exportAll(
  { catalog, reading }: OperationDeps,
  query: DeadLetterQuery,
  signal: AbortSignal,
): AsyncGenerator<Output<'exportDeadLetters'>, void, undefined> {
  let cursor = query.cursor
  for (let count = 0; ; ) {
    signal.throwIfAborted()
    const page = await catalog.deadLetters({
      ...query,
      limit: EXPORT_PAGE,
      ...omitUndefined({ cursor }),
    })
    for (const one of page.deadLetters) yield shownDeadLetter(reading, one)
    count += page.deadLetters.length
    cursor = page.nextCursor
    if (cursor === undefined) return
    if (count >= EXPORT_MAX) throw tooMany()
  }
}

const tooMany = () =>
  new ProblemError(
    'too_broad',
    `An export has at most ${EXPORT_MAX.toLocaleString('en')} dead letters. To continue, add "before:" with the timestamp of the last one.`,
  )

async function* emptyExport(): AsyncGenerator<never, void, undefined> {}
