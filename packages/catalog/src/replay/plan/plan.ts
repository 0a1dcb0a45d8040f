import { createHash, randomUUID } from 'node:crypto'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { explaining, inTransaction, isDuplicate, query, type RunSql } from '../../database.ts'
import { sha256Of, uuidOf } from '../../ingest/identity.ts'
import { compileDeadLetters } from '../../read/compile.ts'
import { NAME_MAX, storable } from '../../text.ts'
import { keepChange } from '../run/payload-change.ts'
import { type Candidate, type GateResult, verdictOf } from './gates.ts'
import {
  type ReplayRequest,
  type ReplaySelection,
  resolveRequest,
  type RunOptions,
  withProof,
} from '../run/options.ts'
import { checkBodies, type CheckedCandidate } from './check-bodies.ts'
import type { ReplayDeps } from '../run/context.ts'
import { readRun, type ReplayRun } from '../run/read-runs.ts'
import { proofOf } from './proof.ts'
import {
  CANDIDATES_BY_ID,
  INSERT_ITEMS,
  INSERT_RUN,
  REPEATS,
  RUN_OF_REQUEST,
  SETTINGS,
  SOURCE_NAME,
  candidatesMatching,
} from './statements.ts'

/** 100,000 items: one transaction freezes them in seconds. */
const ITEMS_MAX = 100_000
/**
 * Freezes the selection as rows, applies the gates to each, and hashes the plan. A plan locks nothing and can be
 * abandoned. If two plans contain the same dead letter, the plan that is approved first replays it.
 */
export async function plan(deps: ReplayDeps, request: ReplayRequest): Promise<ReplayRun> {
  const options = resolveRequest(request)
  return explaining(async () => {
    const id = await planOnce(deps, request, options)
    return (await readRun(deps.pool, id)) as ReplayRun
  })
}

async function planOnce(
  deps: ReplayDeps,
  request: ReplayRequest,
  options: RunOptions,
): Promise<string> {
  const known = await findPlanned(deps.pool, request)
  if (known !== undefined) return known
  try {
    return await createPlan(deps, request, options)
  } catch (error) {
    // Another call with the same request name was faster.
    const other = isDuplicate(error) ? await findPlanned(deps.pool, request) : undefined
    if (other === undefined) throw error
    return other
  }
}

async function findPlanned(pool: Pool, { request }: ReplayRequest): Promise<string | undefined> {
  if (request === undefined) return undefined
  const { rows } = await query<{ id: string }>(pool, RUN_OF_REQUEST, [storable(request, NAME_MAX)])
  return rows[0]?.id
}

async function createPlan(
  deps: ReplayDeps,
  request: ReplayRequest,
  requested: RunOptions,
): Promise<string> {
  const id = randomUUID()
  const change = await keepChange(request.change, id, deps.keys)
  await inTransaction(
    deps.pool,
    async (run) => {
      const { sourceId, candidates } = await select(run, request.selection)
      refuseChanged(request, candidates)
      const name = await nameOf(run, sourceId)
      const proof = await proofOf(run, { name, candidates, request, configured: deps.proofs[name] })
      const options = withProof(requested, request, proof)
      const isForced = request.change !== undefined && 'force' in request.change
      const origins = deps.origins[name]
      const context = { options, isForced, origins }
      const checked = candidates.map((one) => ({ ...one, verdict: verdictOf(one, context) }))
      const examined = await checkBodies(run, deps, { sourceId, change: request.change }, checked)
      await store(run, { id, sourceId, request, options, change, examined })
    },
    SETTINGS,
  )
  return id
}

async function nameOf(run: RunSql, sourceId: number): Promise<string> {
  const [row] = await run<{ name: string }>(SOURCE_NAME, [sourceId])
  return row?.name ?? ''
}

interface SelectedCandidates {
  readonly sourceId: number
  readonly candidates: readonly Candidate[]
}

/** Returns the candidates, oldest first. A later message of the same lane must not overtake an earlier one. */
async function select(run: RunSql, selection: ReplaySelection): Promise<SelectedCandidates> {
  const found = await candidatesOf(run, selection)
  if (found.length > ITEMS_MAX) {
    const most = ITEMS_MAX.toLocaleString('en')
    throw refused(
      `The selection has more than ${most} dead letters. Narrow it, for example by time.`,
    )
  }
  const [first] = found
  if (first === undefined) throw refused('The selection has no dead letters.')
  if (found.some(({ source_id }) => source_id !== first.source_id)) {
    throw refused(
      'The selection has dead letters of several sources. Plan one run for each source.',
    )
  }
  return { sourceId: first.source_id, candidates: found }
}

function refuseChanged({ seenVersion }: ReplayRequest, candidates: readonly Candidate[]): void {
  const isUnchanged = candidates.every(({ version }) => version === seenVersion)
  if (seenVersion === undefined || isUnchanged) return
  throw new RedriveError(
    'CONFLICT',
    'The dead letter has changed since you read it. Read it again, then plan.',
  )
}

type CandidateRow = Candidate & { readonly source_id: number }

async function candidatesOf(
  run: RunSql,
  selection: ReplaySelection,
): Promise<readonly CandidateRow[]> {
  if ('ids' in selection) return run<CandidateRow>(CANDIDATES_BY_ID, [selection.ids])
  const query = 'group' in selection ? { groups: [selection.group] } : selection.query
  const { text: matching, values } = compileDeadLetters({ ...query, limit: ITEMS_MAX })
  return run<CandidateRow>(candidatesMatching(matching), values)
}

export const refused = (message: string): RedriveError =>
  new RedriveError('POLICY_INVALID', message, { problems: [message] })

interface Plan {
  readonly id: string
  readonly sourceId: number
  readonly request: ReplayRequest
  readonly options: RunOptions
  readonly change: unknown
  readonly examined: readonly CheckedCandidate[]
}

async function store(run: RunSql, plan: Plan): Promise<void> {
  const { id, sourceId, request, options, change, examined } = plan
  const { by, note = '', selection, request: name } = request
  const isReplayed = ({ verdict }: CheckedCandidate) => verdict === 'replay'
  const replayed = examined.filter(isReplayed)
  const repeats = await run<{ id: string; times: number }>(REPEATS, [
    replayed.map((one) => one.id),
    replayed.map(({ cycle }) => cycle),
  ])
  const times = new Map(repeats.map((one) => [one.id, one.times]))
  await run(INSERT_RUN, [
    id,
    sourceId,
    name === undefined ? null : storable(name, NAME_MAX),
    hashOf(plan),
    JSON.stringify(selection),
    JSON.stringify(options),
    change === null ? null : JSON.stringify(change),
    storable(note, note.length),
    storable(by, NAME_MAX),
    replayed.length,
    examined.length - replayed.length,
  ])
  await run(INSERT_ITEMS, [
    id,
    examined.map((_, place) => place),
    examined.map((one) => one.id),
    examined.map((one) => replayId(one.id, one.cycle, times.get(one.id) ?? 0)),
    examined.map(({ cycle }) => cycle),
    examined.map(({ version }) => version),
    examined.map((one) => (isReplayed(one) ? 'planned' : 'skipped')),
    examined.map(({ verdict, why }) => (verdict === 'replay' ? null : reasonText(verdict, why))),
    examined.map(({ run_id }) => run_id),
    examined.map(({ content }) => content ?? null),
  ])
}

const reasonText = (verdict: GateResult, why: string | undefined) =>
  why === undefined ? verdict : `${verdict}: ${storable(why, NAME_MAX)}`

/** Returns the replay id. It depends only on the dead letter, its cycle and the number of earlier replays. */
function replayId(deadLetterId: string, cycle: number, times: number): string {
  const name = JSON.stringify(['replay', deadLetterId, cycle, times])
  return uuidOf(sha256Of(name))
}

/**
 * Returns the hash that an approver confirms. It covers the dead letters, their gate results and the options. A
 * random value is included, so that masked values of a body cannot be found by trying values.
 */
function hashOf({ sourceId, options, change, examined }: Plan): string {
  const hash = createHash('sha256')
  hash.update(JSON.stringify([1, randomUUID(), sourceId, options, change]))
  for (const { id, cycle, version, verdict, content } of examined) {
    hash.update(JSON.stringify([id, cycle, version, verdict, content ?? null]))
  }
  return hash.digest('hex')
}
