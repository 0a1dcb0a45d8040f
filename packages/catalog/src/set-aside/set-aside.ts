import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { explaining, inTransaction } from '../database.ts'
import type { PayloadKeys } from '../encryption.ts'
import { isId } from '../read/check.ts'
import type { Reader } from '../read/sql.ts'
import type { ApprovalRule } from '../replay/run/lifecycle.ts'
import { NAME_MAX, storable } from '../text.ts'
import type { DiscardResult } from '../triage/discard.ts'
import {
  getSetAside,
  listSetAside,
  openSetAside,
  type OpenSetAside,
  readSetAside,
  type SetAsideDetail,
  type SetAsideMessage,
  type SetAsidePage,
  type SetAsideQuery,
  type SetAsideStatus,
} from './read.ts'
import { CHANGE_SET_ASIDE, LOCK_SET_ASIDE } from './statements.ts'

/** The messages that could not be catalogued as dead letters. They are kept whole, outside of groups and searches. */
export interface SetAside {
  /** Returns a page of messages, newest first. */
  list(query?: SetAsideQuery): Promise<SetAsidePage>
  /** Returns one message without its body and headers, or undefined if it does not exist. Needs no key. */
  get(id: string): Promise<SetAsideMessage | undefined>
  /** Returns one message with its body and headers, or undefined if it does not exist. */
  read(id: string): Promise<SetAsideDetail | undefined>
  /** Opens one message, to read its body in pieces. Undefined: it does not exist. */
  open(id: string): Promise<OpenSetAside | undefined>
  /**
   * Requests a replay of open messages to their origin. Nothing is published before `approve`. `withoutHeaders` names
   * headers to leave out, for example a header that is too large to publish. Default: none.
   */
  requestReplay(
    ids: readonly string[],
    request: { readonly by: string; readonly withoutHeaders?: readonly string[] },
  ): Promise<DiscardResult>
  /**
   * Approves requested replays. A replayer publishes them within seconds, each once. `withoutHeaders` are the headers
   * that the approver saw in the requests (default: none). Requests with other ones are skipped.
   */
  approve(
    ids: readonly string[],
    approval: { readonly by: string; readonly withoutHeaders?: readonly string[] },
  ): Promise<DiscardResult>
  /** Discards open and requested messages. They can be opened again until retention deletes them. */
  discard(ids: readonly string[], actor: { readonly by: string }): Promise<DiscardResult>
  /** Opens discarded and requested messages again. */
  reopen(ids: readonly string[], actor: { readonly by: string }): Promise<DiscardResult>
}

export interface SetAsideDeps {
  readonly pool: Pool
  readonly keys: PayloadKeys | undefined
  readonly reader: Reader
  readonly approval: ApprovalRule
}

/** A change of status. */
interface StatusChange {
  readonly from: readonly SetAsideStatus[]
  readonly to: SetAsideStatus
  /** Whether the actor must not be the user who requested the replay. */
  readonly needsAnother?: boolean
  /** The headers to leave out. The actor is stored as the user who requested the replay. */
  readonly withoutHeaders?: readonly string[]
  /** The headers that the request must leave out. */
  readonly expectedWithout?: readonly string[]
}

export function createSetAside({ pool, keys, reader, approval }: SetAsideDeps): SetAside {
  const change =
    (to: StatusChange) =>
    (ids: readonly string[], { by }: { readonly by: string }) =>
      changeStatus(pool, to, ids, by)
  return {
    list: (query = {}) => listSetAside(reader, query),
    get: (id) => getSetAside(reader, id),
    read: (id) => readSetAside(reader, keys, id),
    open: (id) => openSetAside(reader, keys, id),
    requestReplay: (ids, { by, withoutHeaders = [] }) =>
      changeStatus(pool, { from: ['open'], to: 'requested', withoutHeaders }, ids, by),
    approve(ids, { by, withoutHeaders: expectedWithout = [] }) {
      const needsAnother = approval === 'another_person'
      const to = { from: ['requested'], to: 'replaying', needsAnother, expectedWithout } as const
      return changeStatus(pool, to, ids, by)
    },
    discard: change({ from: ['open', 'requested'], to: 'discarded' }),
    reopen: change({ from: ['discarded', 'requested'], to: 'open' }),
  }
}

/** 1,000 ids: more than users select by hand. */
const IDS_MAX = 1_000

async function changeStatus(
  pool: Pool,
  { from, to, needsAnother = false, withoutHeaders, expectedWithout }: StatusChange,
  ids: readonly string[],
  by: string,
): Promise<DiscardResult> {
  check(ids, by)
  const actor = storable(by, NAME_MAX)
  return explaining(() =>
    inTransaction(pool, async (run) => {
      const locked = await run<LockedMessage>(LOCK_SET_ASIDE, [ids, from])
      const found = locked.filter(
        ({ without_headers: names }) =>
          expectedWithout === undefined || areSame(names, expectedWithout),
      )
      if (needsAnother && found.some(({ requested_by }) => requested_by === actor))
        throw ownRequest()
      const changed = new Set(found.map(({ id }) => id))
      const requester = withoutHeaders === undefined ? null : actor
      await run(CHANGE_SET_ASIDE, [[...changed], to, requester, withoutHeaders ?? null])
      return { changed: changed.size, skipped: ids.filter((id) => !changed.has(id)) }
    }),
  )
}

interface LockedMessage {
  readonly id: string
  readonly requested_by: string | null
  readonly without_headers: readonly string[]
}

const areSame = (names: readonly string[], others: readonly string[]) =>
  names.every((name) => others.includes(name)) && others.every((name) => names.includes(name))

const ownRequest = () =>
  new RedriveError(
    'NEEDS_ANOTHER_PERSON',
    'You cannot approve a replay that you requested. Ask another person to approve it.',
  )

function check(ids: readonly string[], by: string): void {
  const problems: string[] = []
  if (!(ids.length >= 1 && ids.length <= IDS_MAX && ids.every(isId)))
    problems.push(`ids: expected 1 to ${IDS_MAX} ids of messages that were set aside`)
  if (by === '') problems.push('by: expected the name of the user')
  if (problems.length === 0) return
  throw new RedriveError('POLICY_INVALID', problems.join('\n'), { problems })
}
