import type { Action, Answer, Input } from '@redrive/api'
import type {
  Catalog,
  DeadLetterDetail,
  DeadLetterPreview,
  DeadLetterQuery,
  DeadLetterSummary,
} from '@redrive/catalog'
import { allows } from '../access/allow.ts'
import { Refusal } from '../access/refusal.ts'
import { only } from './facts.ts'
import { type Deed, notFound } from './guard.ts'
import type { Handlers } from './handlers.ts'
import { pairsOf, valuesOf } from './pairs.ts'
import type { DeskParts } from './parts.ts'
import { present } from './present.ts'
import { narrowedFor } from './values.ts'

type DeadLetters =
  | 'listDeadLetters'
  | 'exportDeadLetters'
  | 'getDeadLetter'
  | 'getPayload'
  | 'listDeadLetterReplays'
  | 'listDeadLetterComments'
  | 'commentDeadLetter'

export function deadLetters(parts: DeskParts): Handlers<DeadLetters> {
  const { catalog, guard } = parts
  return {
    async listDeadLetters(caller, { query = {} }) {
      const asked = await queryOf(parts, { caller, what: 'listDeadLetters' }, query)
      if (asked === undefined) return { deadLetters: [] }
      const page = await catalog.deadLetters(asked)
      return { deadLetters: page.deadLetters.map(shown), next: page.next }
    },

    async exportDeadLetters(caller, { query = {} }, { signal }) {
      const deed = { caller, what: 'exportDeadLetters' } as const
      for (const source of query.sources ?? []) await guard.check(deed, source, ['export'])
      const asked = await queryOf(parts, deed, query, 'export')
      const of = present({ source: only(asked?.sources) })
      await guard.seen({ ...deed, ...of, facts: { export: { ...asked } } })
      return asked === undefined ? nothing() : exported(catalog, asked, signal)
    },

    async getDeadLetter(caller, { params: { id } }) {
      const asked = { caller, what: 'getDeadLetter', subject: id } as const
      const source = await guard.sourceOf(asked, 'deadLetter', id)
      const isHidden = !allows(caller, 'payload', source)
      const found = await catalog.deadLetterPreview(id)
      if (found === undefined) throw notFound('deadLetter')
      if (!isHidden) await guard.seen({ ...asked, source })
      return { ...shown(found), body: { isHidden, ...(isHidden ? {} : previewOf(found)) } }
    },

    async getPayload(caller, { params: { id } }) {
      const asked = { caller, what: 'getPayload', subject: id } as const
      const source = await guard.sourceOf(asked, 'deadLetter', id, 'unmask')
      const found = await catalog.deadLetter(id)
      if (found === undefined) throw notFound('deadLetter')
      await guard.seen({ ...asked, source })
      return payloadOf(found)
    },

    async listDeadLetterReplays(caller, { params: { id } }) {
      await guard.sourceOf({ caller, what: 'listDeadLetterReplays' }, 'deadLetter', id)
      return { items: [...(await catalog.replays.items({ deadLetter: id }))] }
    },

    async listDeadLetterComments(caller, { params: { id } }) {
      await guard.sourceOf({ caller, what: 'listDeadLetterComments' }, 'deadLetter', id)
      return { comments: [...(await catalog.comments(id))] }
    },

    async commentDeadLetter(caller, { params: { id }, body: { text } }) {
      const asked = { caller, what: 'commentDeadLetter', subject: id } as const
      const source = await guard.sourceOf(asked, 'deadLetter', id, 'triage')
      const comment = { author: caller.person, text }
      await guard.mutate({ ...asked, source }, () => catalog.comment(id, comment))
    },
  }
}

type Query = NonNullable<Input<'listDeadLetters'>['query']>

/** As the catalog asks it, narrowed to what the caller may see; undefined: nothing is left of it. */
async function queryOf(
  parts: DeskParts,
  deed: Deed,
  query: Query,
  ...actions: readonly Action[]
): Promise<DeadLetterQuery | undefined> {
  const { sources: _, headers, extracted, json, ...rest } = present(query)
  const sources = await narrowedFor(parts, deed, present(query), ...actions)
  if (sources?.length === 0) return undefined
  return {
    ...rest,
    ...present({
      sources,
      headers: pairsOf(headers),
      extracted: pairsOf(extracted),
      json: valuesOf(json),
    }),
  }
}

const shown = (one: DeadLetterSummary): Answer<'listDeadLetters'>['deadLetters'][number] => ({
  ...one,
  history: [...one.history],
})

const previewOf = ({ preview }: DeadLetterPreview) => (preview === undefined ? {} : { preview })

function payloadOf({ drained, contentType }: DeadLetterDetail): Answer<'getPayload'> {
  const { bytes, headers, key } = drained.delivery
  const text = textOf(bytes)
  return {
    bytes: Buffer.from(bytes).toString('base64'),
    headers: { ...headers },
    key,
    contentType,
    ...(text === undefined ? {} : { text }),
  }
}

/** Undefined: it is not text. */
export function textOf(bytes: Uint8Array): string | undefined {
  const text = Buffer.from(bytes).toString('utf8')
  return Buffer.from(text, 'utf8').equals(bytes) ? text : undefined
}

/** 100,000: what a spreadsheet opens. */
const EXPORT_MAX = 100_000
/** 200: the largest page there is. */
const EXPORT_PAGE = 200

/** Ends with an error when it is not whole: a file that looks whole and is not would be believed. */
async function* exported(
  catalog: Catalog,
  query: DeadLetterQuery,
  signal: AbortSignal,
): AsyncGenerator<Answer<'exportDeadLetters'>, void, undefined> {
  let next = query.next
  for (let count = 0; ; ) {
    signal.throwIfAborted()
    const page = await catalog.deadLetters({ ...query, most: EXPORT_PAGE, ...present({ next }) })
    for (const one of page.deadLetters) yield shown(one)
    count += page.deadLetters.length
    next = page.next
    if (next === undefined) return
    if (count >= EXPORT_MAX) throw tooMany()
  }
}

const tooMany = () =>
  new Refusal(
    'too_broad',
    `An export has at most ${EXPORT_MAX.toLocaleString('en')} dead letters. Go on with the moment of the last one as 'before'.`,
  )

async function* nothing(): AsyncGenerator<never, void, undefined> {}
