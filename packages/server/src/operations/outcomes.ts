import type { Output } from '@redrive/api'
import type { Catalog, DeadLetterQuery } from '@redrive/catalog'
import { ProblemError } from '../access/problem-error.ts'
import { auditedFilter, only } from './audit-facts.ts'
import type { AuditedAction } from './authorize.ts'
import type { OperationDeps } from './context.ts'
import { readFilter } from './filter.ts'
import { narrowedFor, valuesNeed } from './payload-filters.ts'
import { omitUndefined } from './present.ts'

/** The statuses without a known outcome. */
const UNDECIDED = ['unknown', 'not_returned'] as const
/** 10,000 messages per request: ten transactions, some seconds. A client repeats the request for more. */
const REQUEST_MAX = 10_000
/** 200: the largest page of the catalog. */
const PAGE_SIZE = 200
/** 1,000 ids: as many as a request may contain. */
const BATCH_SIZE = 1_000

type OutcomesSet = Output<'setOutcomes'>

/** Sets the outcome of the messages that match a filter and have no known outcome. */
export async function setOutcomesByFilter(
  parts: OperationDeps,
  audited: AuditedAction & { readonly operation: 'setOutcomes' },
  { filter, as }: { readonly filter: string; readonly as: 'resolved' | 'open' },
): Promise<OutcomesSet> {
  const { catalog, guard } = parts
  const sealed = await auditedFilter(parts.sealValue, filter)
  const asked = { ...audited, facts: { as, filter: sealed } }
  const { messages, hasMore } = await undecided(catalog, await queryOf(parts, asked, filter))
  let changed = 0
  const skipped: string[] = []
  for (let from = 0; from < messages.length; from += BATCH_SIZE) {
    const batch = messages.slice(from, from + BATCH_SIZE)
    const ids = batch.map(({ id }) => id)
    const sources = [...new Set(batch.map(({ source }) => source))]
    const facts = { ...asked.facts, sources, count: ids.length, ids }
    // Each batch is a transaction with a separate entry: if a later one fails, the log has what was changed before.
    const done = await guard.mutate(
      { ...asked, ...omitUndefined({ source: only(sources) }), facts },
      () => catalog.replays.setOutcome(ids, { as, by: audited.caller.person }),
      (result) => ({
        facts: { ...facts, changed: result.changed, skipped: result.skipped.length },
      }),
    )
    changed += done.changed
    skipped.push(...done.skipped)
  }
  return {
    ...{ changed, skipped: skipped.slice(0, BATCH_SIZE), skippedCount: skipped.length },
    ...(hasMore ? { hasMore } : {}),
  }
}

/** Parses a filter and limits it to the sources where the caller may set outcomes. */
async function queryOf(
  parts: OperationDeps,
  audited: AuditedAction,
  filter: string,
): Promise<DeadLetterQuery> {
  const wanted = readFilter(filter)
  const { statuses = UNDECIDED } = wanted
  if (statuses.some((one) => !(UNDECIDED as readonly string[]).includes(one))) throw notUndecided()
  for (const source of wanted.sources ?? []) {
    await parts.guard.check(audited, source, [
      'replay',
      ...valuesNeed(parts.reading, source, wanted),
    ])
  }
  const sources = await narrowedFor(parts, audited, wanted, 'replay')
  return { ...wanted, statuses, ...omitUndefined({ sources }) }
}

const notUndecided = () =>
  new ProblemError(
    'invalid',
    `Remove "status" from the filter, or use ${UNDECIDED.map((one) => `status:${one}`).join(' and ')}: other outcomes are already known.`,
  )

interface UndecidedPage {
  readonly messages: readonly { readonly id: string; readonly source: string }[]
  readonly hasMore: boolean
}

/** Reads all matching messages before one is changed, because a change removes it from its page. */
async function undecided(catalog: Catalog, query: DeadLetterQuery): Promise<UndecidedPage> {
  const messages: { readonly id: string; readonly source: string }[] = []
  let cursor: string | undefined
  do {
    if (query.sources?.length === 0) break
    const page = { ...query, limit: PAGE_SIZE, ...omitUndefined({ cursor }) }
    const { deadLetters, nextCursor } = await catalog.deadLetters(page)
    for (const { id, source } of deadLetters) messages.push({ id, source })
    cursor = nextCursor
  } while (cursor !== undefined && messages.length < REQUEST_MAX)
  return { messages, hasMore: cursor !== undefined }
}
