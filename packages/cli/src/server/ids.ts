import type { Client } from '@redrive/api'
import { STATUSES } from '@redrive/api/words'
import { CommandError, EXIT } from '../exit.ts'
import type { Io } from '../io.ts'

const WHOLE = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i
const PREFIX = /^[0-9a-f][0-9a-f-]{0,35}$/i

/** 4: short enough to type, long enough to mean something. */
const LEAST = 4

/** The shortest beginnings that tell the ids of a page apart. */
export function shortIds(ids: readonly string[]): (id: string) => string {
  const all = new Set(ids)
  for (let length = LEAST; length < 36; length += 1) {
    const short = new Set([...all].map((id) => id.slice(0, length)))
    if (short.size === all.size)
      return (id) => (all.has(id) ? id.slice(0, length).replace(/-$/, '') : id)
  }
  return (id) => id
}

/** What can be named by the beginning of its id. */
export type Kind = 'group' | 'message' | 'run' | 'token'

interface Page {
  readonly ids: readonly string[]
  readonly next: string | undefined
}

type List = (client: Client, asked: Asked, signal: AbortSignal) => Promise<Page>

interface Asked {
  readonly prefix: string
  readonly next: string | undefined
}

/** 200: the largest page there is. */
const MOST = 200
/** 5 pages: a prefix is something that was on the screen a moment ago, so it is among the newest. */
const PAGES = 5

const on = ({ next }: Asked) => ({ most: MOST, ...(next === undefined ? {} : { next }) })
const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id)

const LISTS: Readonly<Record<Kind, List>> = {
  group: async (client, asked, signal) => {
    const { groups, ...page } = await client.call('listGroups', { query: on(asked) }, { signal })
    return { ids: idsOf(groups), next: page.next }
  },
  message: async (client, asked, signal) => {
    // In every status: what is restored or decided is not open, and who says nothing gets open ones.
    const query = { ...on(asked), after: momentIn(asked.prefix), statuses: [...STATUSES] }
    const answer = await client.call('listDeadLetters', { query }, { signal })
    return { ids: idsOf(answer.deadLetters), next: answer.next }
  },
  run: async (client, asked, signal) => {
    const { runs, ...page } = await client.call('listReplays', { query: on(asked) }, { signal })
    return { ids: idsOf(runs), next: page.next }
  },
  token: async (client, _, signal) => {
    const { tokens } = await client.call('listTokens', {}, { signal })
    return { ids: idsOf(tokens), next: undefined }
  },
}

/** The id of a message begins with when it first failed, in 12 hex digits: none is older than its beginning says. */
const momentIn = (prefix: string): number =>
  Number.parseInt(prefix.replaceAll('-', '').slice(0, 12).padEnd(12, '0'), 16)

/**
 * The whole id of what is looked at. Only whole ids go to the server: a beginning may mean something else a
 * moment later.
 */
export async function wholeId(io: Io, client: Client, kind: Kind, given: string): Promise<string> {
  return WHOLE.test(given) ? given.toLowerCase() : (await found(io, client, kind, given)).id
}

/** The whole id of what is changed: a beginning counts only when everything was compared with it. */
export async function certainId(
  io: Io,
  client: Client,
  kind: Kind,
  given: string,
): Promise<string> {
  if (WHOLE.test(given)) return given.toLowerCase()
  const { id, isOnlyOne } = await found(io, client, kind, given)
  if (isOnlyOne) return id
  throw new CommandError(
    EXIT.usage,
    `${given} is ${id} among the newest ${MOST * PAGES}, but there are older ones, and another ${kind} may begin like that. To change it, give the whole id.`,
  )
}

export async function certainIds(
  io: Io,
  client: Client,
  kind: Kind,
  given: readonly string[],
): Promise<string[]> {
  const ids: string[] = []
  for (const one of given) ids.push(await certainId(io, client, kind, one))
  return ids
}

interface Found {
  readonly id: string
  /** False: not everything was compared. */
  readonly isOnlyOne: boolean
}

async function found(io: Io, client: Client, kind: Kind, given: string): Promise<Found> {
  if (!PREFIX.test(given)) {
    throw new CommandError(
      EXIT.usage,
      `${given} is not the id of a ${kind}, nor the beginning of one.`,
    )
  }
  const { ids, isAll } = await matching(io, client, kind, given.toLowerCase())
  const [id] = ids
  if (id === undefined) throw nothingFound(kind, given)
  if (ids.length === 1) return { id, isOnlyOne: isAll }
  throw new CommandError(
    EXIT.usage,
    [`${given} can be ${ids.length} of them. Which ${kind}?`, ...ids.slice(0, SHOWN)].join('\n  '),
  )
}

/** 10 candidates are enough to see that more letters are needed. */
const SHOWN = 10

async function matching(
  io: Io,
  client: Client,
  kind: Kind,
  prefix: string,
): Promise<{ readonly ids: readonly string[]; readonly isAll: boolean }> {
  const ids = new Set<string>()
  let next: string | undefined
  for (let page = 0; page < PAGES; page += 1) {
    const answer = await LISTS[kind](client, { prefix, next }, io.signal)
    for (const id of answer.ids) if (id.startsWith(prefix)) ids.add(id)
    next = answer.next
    if (next === undefined) break
  }
  return { ids: [...ids], isAll: next === undefined }
}

const nothingFound = (kind: Kind, given: string) =>
  new CommandError(
    EXIT.notFound,
    `No ${kind} that you may see begins with ${given}, among the newest ${MOST * PAGES}. For an older one, give the whole id.`,
  )
