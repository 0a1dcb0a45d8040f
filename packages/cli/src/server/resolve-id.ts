import type { Client } from '@redrive/api'
import { SET_ASIDE_STATUSES, STATUSES } from '@redrive/api/enums'
import { CommandError, EXIT } from '../exit.ts'
import type { Io } from '../io.ts'

const WHOLE = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i
const PREFIX = /^[0-9a-f][0-9a-f-]{0,35}$/i

/** 4 characters: short to type, and usually unique. */
const LEAST = 4

/** Returns a function that shortens an id to the shortest prefix that is unique on the page. */
export function shortIds(ids: readonly string[]): (id: string) => string {
  const all = new Set(ids)
  for (let length = LEAST; length < 36; length += 1) {
    const short = new Set([...all].map((id) => id.slice(0, length)))
    if (short.size === all.size)
      return (id) => (all.has(id) ? id.slice(0, length).replace(/-$/, '') : id)
  }
  return (id) => id
}

/** Things that can be named by a prefix of their id. */
export type Kind = 'group' | 'message' | 'run' | 'session' | 'set-aside message' | 'token'

interface Page {
  readonly ids: readonly string[]
  readonly nextCursor: string | undefined
}

type ListPage = (client: Client, request: PageRequest, signal: AbortSignal) => Promise<Page>

interface PageRequest {
  readonly prefix: string
  readonly cursor: string | undefined
}

/** 200: the largest page that the API allows. */
const PAGE_SIZE = 200
/** 5 pages. A prefix was on the screen recently, so its id is among the newest. */
const PAGES = 5

const pageQuery = ({ cursor }: PageRequest) => ({
  limit: PAGE_SIZE,
  ...(cursor === undefined ? {} : { cursor }),
})
const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id)

const LISTS: Readonly<Record<Kind, ListPage>> = {
  group: async (client, request, signal) => {
    const query = pageQuery(request)
    const { groups, ...page } = await client.call('listGroups', { query }, { signal })
    return { ids: idsOf(groups), nextCursor: page.nextCursor }
  },
  message: async (client, request, signal) => {
    // All statuses: a dead letter to restore or decide is not open, and the default is open ones only.
    const words = [
      `after:${timeIn(request.prefix)}`,
      ...STATUSES.map((status) => `status:${status}`),
    ]
    const query = { ...pageQuery(request), filter: words.join(' ') }
    const answer = await client.call('listDeadLetters', { query }, { signal })
    return { ids: idsOf(answer.deadLetters), nextCursor: answer.nextCursor }
  },
  run: async (client, request, signal) => {
    const query = pageQuery(request)
    const { runs, ...page } = await client.call('listReplays', { query }, { signal })
    return { ids: idsOf(runs), nextCursor: page.nextCursor }
  },
  session: async (client, _, signal) => {
    const { sessions } = await client.call('listSessions', {}, { signal })
    return { ids: idsOf(sessions), nextCursor: undefined }
  },
  'set-aside message': async (client, request, signal) => {
    const query = { ...pageQuery(request), statuses: [...SET_ASIDE_STATUSES] }
    const { messages, ...page } = await client.call('listSetAside', { query }, { signal })
    return { ids: idsOf(messages), nextCursor: page.nextCursor }
  },
  token: async (client, _, signal) => {
    const { tokens } = await client.call('listTokens', {}, { signal })
    return { ids: idsOf(tokens), nextCursor: undefined }
  },
}

/**
 * Returns the earliest time that an id with this prefix can contain. The first 12 hex digits of a message id
 * are the time of its first failure.
 */
const timeIn = (prefix: string): number =>
  Number.parseInt(prefix.replaceAll('-', '').slice(0, 12).padEnd(12, '0'), 16)

/**
 * Returns the full id for a command that only reads. Only full ids are sent to the server, because a prefix
 * may match another id later.
 */
export async function resolveId(
  io: Io,
  client: Client,
  kind: Kind,
  given: string,
): Promise<string> {
  return WHOLE.test(given) ? given.toLowerCase() : (await findByPrefix(io, client, kind, given)).id
}

/** Returns the full id for a command that changes something. Accepts a prefix only if all ids were compared. */
export async function resolveUniqueId(
  io: Io,
  client: Client,
  kind: Kind,
  given: string,
): Promise<string> {
  if (WHOLE.test(given)) return given.toLowerCase()
  const { id, isOnlyOne } = await findByPrefix(io, client, kind, given)
  if (isOnlyOne) return id
  throw new CommandError(
    EXIT.usage,
    `"${given}" matches ${id} among the newest ${PAGE_SIZE * PAGES}, but an older ${kind} may match too. To change it, use the full id.`,
  )
}

export async function certainIds(
  io: Io,
  client: Client,
  kind: Kind,
  given: readonly string[],
): Promise<string[]> {
  const ids: string[] = []
  for (const one of given) ids.push(await resolveUniqueId(io, client, kind, one))
  return ids
}

interface Match {
  readonly id: string
  /** False: not all ids were compared. */
  readonly isOnlyOne: boolean
}

async function findByPrefix(io: Io, client: Client, kind: Kind, given: string): Promise<Match> {
  if (!PREFIX.test(given)) {
    throw new CommandError(
      EXIT.usage,
      `"${given}" is not the id of a ${kind} or a prefix of one. Expected hexadecimal digits.`,
    )
  }
  const { ids, isAll } = await matching(io, client, kind, given.toLowerCase())
  const [id] = ids
  if (id === undefined) throw nothingFound(kind, given)
  if (ids.length === 1) return { id, isOnlyOne: isAll }
  throw new CommandError(
    EXIT.usage,
    [
      `"${given}" matches ${ids.length} ${kind}s. Use a longer prefix:`,
      ...ids.slice(0, SHOWN),
    ].join('\n  '),
  )
}

/** 10 candidates are enough to see that a longer prefix is needed. */
const SHOWN = 10

async function matching(
  io: Io,
  client: Client,
  kind: Kind,
  prefix: string,
): Promise<{ readonly ids: readonly string[]; readonly isAll: boolean }> {
  const ids = new Set<string>()
  let cursor: string | undefined
  for (let page = 0; page < PAGES; page += 1) {
    const answer = await LISTS[kind](client, { prefix, cursor }, io.signal)
    for (const id of answer.ids) if (id.startsWith(prefix)) ids.add(id)
    cursor = answer.nextCursor
    if (cursor === undefined) break
  }
  return { ids: [...ids], isAll: cursor === undefined }
}

const nothingFound = (kind: Kind, given: string) =>
  new CommandError(
    EXIT.notFound,
    `No visible ${kind} matches "${given}" among the newest ${PAGE_SIZE * PAGES}. For an older ${kind}, use the full id.`,
  )
