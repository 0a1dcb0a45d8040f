import { RedriveError } from '@redrive/core'
import { explaining, inTransaction, type RunSql } from '../database.ts'
import { addMissingGroups } from '../ingest/groups.ts'
import type { Cursor } from '../read/sql.ts'
import type { RegroupingDeps } from './merge.ts'
import { type PlannedMove, readPage, type Scope } from './scan.ts'
import { MOVE, SHARE_SOURCE, SOURCE_ID } from './statements.ts'

/** The result of moves that end after some seconds. */
export interface ApplyResult {
  readonly moved: number
  readonly examined: number
  /** Continue with it. Undefined: all open dead letters were compared. */
  readonly nextCursor: string | undefined
}

/** 10 s per call: a client shows the progress, and no connection waits longer. */
const APPLY_MS = 10_000
/** 500 rows per transaction, as an ingest: other writers wait milliseconds. */
const MOVE_BATCH = 500

/**
 * Moves the open dead letters of the scopes, in small transactions. It ends after some seconds and returns where to
 * continue. A repeated call moves only what is not in its group yet.
 */
export async function moveInSlices(
  deps: RegroupingDeps,
  scopes: readonly Scope[],
  cursor: string | undefined,
  budgetMs: number = APPLY_MS,
): Promise<ApplyResult> {
  const endsAt = performance.now() + budgetMs
  const start = cursor === undefined ? undefined : readPosition(cursor)
  const inOrder = [...scopes].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
  let [moved, examined] = [0, 0]
  for (const scope of inOrder) {
    if (start !== undefined && keyOf(scope) < start.scope) continue
    let at = start?.scope === keyOf(scope) ? start.at : undefined
    for (let current = scope; ; ) {
      const page = await readPage(deps.reader, current, at)
      const moves = page.letters.flatMap((letter) => current.plan(letter) ?? [])
      const done = await moveAll(deps, current, moves)
      moved += done.moved
      if (done.renewed !== undefined) {
        // A user has split or merged groups since. The page is read and planned again.
        current = done.renewed
        continue
      }
      examined += page.letters.length
      at = page.next
      if (at === undefined) break
      if (performance.now() > endsAt) {
        return { moved, examined, nextCursor: positionText({ scope: keyOf(scope), at }) }
      }
    }
  }
  return { moved, examined, nextCursor: undefined }
}

const keyOf = ({ source, part }: Scope) => part ?? source

interface MoveResult {
  readonly moved: number
  /** The scope by the splits of now, if they have changed. The rest of the moves was not made. */
  readonly renewed?: Scope
}

async function moveAll(
  { pool }: RegroupingDeps,
  scope: Scope,
  moves: readonly PlannedMove[],
): Promise<MoveResult> {
  let moved = 0
  for (let from = 0; from < moves.length; from += MOVE_BATCH) {
    const batch = moves.slice(from, from + MOVE_BATCH)
    const done = await explaining(() => inTransaction(pool, (run) => moveBatch(run, scope, batch)))
    moved += done.moved
    if (done.renewed !== undefined) return { moved, renewed: done.renewed }
  }
  return { moved }
}

/** Moves some dead letters. The lock of the source prevents merges and splits until the end of the transaction. */
async function moveBatch(
  run: RunSql,
  scope: Scope,
  batch: readonly PlannedMove[],
): Promise<MoveResult> {
  const { source: name } = scope
  const [known] = await run<{ id: number }>(SOURCE_ID, [name])
  const id = known?.id ?? 0
  await run(SHARE_SOURCE, [id])
  const renewed = await scope.renew?.(run)
  if (renewed !== undefined) return { moved: 0, renewed }
  const targets = new Map(batch.map((move) => [move.target.id, move]))
  const overflow = await addMissingGroups(
    run,
    { id, name },
    [...targets.values()].map(({ target, letter }) => ({ group: target, at: letter.last_ms })),
  )
  const moves = batch
    .map(({ letter, target }) => ({ letter, to: (overflow.get(target.id) ?? target).id }))
    .filter(({ letter, to }) => letter.group_id !== to)
  const [row] = await run<{ moved: number }>(MOVE, [
    moves.map(({ letter }) => letter.id),
    moves.map(({ letter }) => letter.group_id),
    moves.map(({ to }) => to),
  ])
  return { moved: row?.moved ?? 0 }
}

/** Where a call ended: the source or group, and the last dead letter. */
interface Position {
  readonly scope: string
  readonly at: Cursor
}

const positionText = ({ scope, at }: Position) =>
  Buffer.from(JSON.stringify([scope, at.at, at.id])).toString('base64url')

function readPosition(text: string): Position {
  try {
    const [scope, at, id] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[]
    if (typeof scope === 'string' && typeof at === 'number' && typeof id === 'string') {
      return { scope, at: { at, id } }
    }
  } catch {
    // Not a cursor. The error below reports it.
  }
  const problem = 'cursor: expected "nextCursor" of the previous call'
  throw new RedriveError('POLICY_INVALID', problem, { problems: [problem] })
}
