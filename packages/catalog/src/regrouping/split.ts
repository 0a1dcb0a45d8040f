import { RedriveError } from '@redrive/core'
import { addGroups } from '../ingest/groups.ts'
import { namedGroupId } from '../ingest/identity.ts'
import type { FailureGroup } from '../read/failure-group.ts'
import { readGroup } from '../read/groups.ts'
import { ask } from '../read/sql.ts'
import { MESSAGE_MAX, NAME_MAX, storable } from '../text.ts'
import { GROUP_EXISTS, PARTS_OF_GROUP } from '../triage/statements.ts'
import { type ApplyResult, moveInSlices } from './apply.ts'
import { isMatch } from './match.ts'
import { alone, conflict, type RegroupingDeps } from './merge.ts'
import { namedGroup } from './named.ts'
import { RULE_TEXT_MAX } from './rules.ts'
import { type LetterRow, traitsOf } from './scan.ts'
import { COUNT_SPLITS, INSERT_SPLIT, SPLIT_BY_NAME } from './statements.ts'

/** Conditions of a split, as in a filter. A dead letter must match all of them. */
export interface SplitConditions {
  readonly class?: string
  readonly code?: string
  readonly type?: string
  readonly handler?: string
  /** Parts of the failure message, ignoring case. */
  readonly texts?: readonly string[]
  /** Exact values of headers for display, by name. */
  readonly headers?: Readonly<Record<string, string>>
}

export interface SplitRequest {
  /** At least one condition. */
  readonly conditions: SplitConditions
  /** Name of the new group. */
  readonly name: string
  /** Name of the user. */
  readonly by: string
  /** Why these are a different failure. */
  readonly reason: string
  /** `nextCursor` of the previous call, with otherwise the same request. Default: from the start. */
  readonly cursor?: string
}

export interface SplitResult extends ApplyResult {
  /** The new group. */
  readonly group: FailureGroup
}

/** 200 splits per source: the ingest compares each dead letter with all of them. */
const SPLITS_MAX = 200

const FIELDS: ReadonlySet<string> = new Set<keyof SplitConditions>([
  'class',
  'code',
  'type',
  'handler',
  'texts',
  'headers',
])

/**
 * Stores the split, so that later dead letters follow it, and moves open ones for some seconds. The same request with the
 * cursor continues.
 */
export async function splitGroupBy(
  deps: RegroupingDeps,
  id: string,
  request: SplitRequest,
): Promise<SplitResult> {
  check(request)
  const { conditions, name } = request
  const origin = await readGroup(deps.reader, id)
  if (origin === undefined) throw conflict(`No group has the id ${id}.`)
  const { source } = origin
  await alone(deps.pool, id, async (run, sourceId) => {
    const stored = JSON.stringify(conditions)
    const newId = namedGroupId(source, name)
    const [known] = await run<{ is_same: boolean }>(SPLIT_BY_NAME, [id, name, stored])
    if (known?.is_same === true) return
    if ((await run(GROUP_EXISTS, [newId])).length > 0) {
      throw conflict(
        `Source "${source}" already has a group with the name "${name}". Choose another name.`,
      )
    }
    const [current] = await run<{ is_merged: boolean }>(GROUP_EXISTS, [id])
    if (current?.is_merged === true) {
      throw conflict(
        `The group ${id} is merged into another group. Split that group, or unmerge ${id} first.`,
      )
    }
    const [counted] = await run<{ count: number }>(COUNT_SPLITS, [sourceId])
    if ((counted?.count ?? 0) >= SPLITS_MAX) {
      throw conflict(
        `Source "${source}" already has ${SPLITS_MAX} splits. Write a fingerprint rule in the config instead.`,
      )
    }
    const traits = { class: origin.class, message: origin.sample, ownHandler: null }
    const { root } = namedGroup(source, name, traits)
    if (root !== undefined)
      await addGroups(run, sourceId, [{ group: root, at: origin.firstSeenAt }])
    const by = storable(request.by, NAME_MAX)
    const reason = storable(request.reason, MESSAGE_MAX)
    await run(INSERT_SPLIT, [sourceId, id, newId, name, stored, by, reason])
  })
  const parts = await ask<{ id: string }>(deps.reader, { text: PARTS_OF_GROUP, values: [[id]] })
  const plan = (letter: LetterRow) => {
    const traits = traitsOf(letter)
    if (!isMatch(conditions, traits)) return undefined
    const target = namedGroup(source, name, { ...traits, ownHandler: letter.own_handler })
    return { letter, target, rule: undefined }
  }
  const withHeaders = conditions.headers !== undefined
  const scopes = parts.map((part) => ({ source, part: part.id, withHeaders, plan }))
  const done = await moveInSlices(deps, scopes, request.cursor)
  return {
    ...done,
    group: (await readGroup(deps.reader, namedGroupId(source, name))) as FailureGroup,
  }
}

function check({ conditions, name, by, reason }: SplitRequest): void {
  const problems: string[] = []
  const given = Object.entries(conditions)
  const unknown = given.filter(([field]) => !FIELDS.has(field)).map(([field]) => field)
  if (unknown.length > 0) {
    problems.push(
      `conditions: a split cannot use ${unknown.join(', ')}. Use ${[...FIELDS].join(', ')}`,
    )
  }
  if (given.length === 0)
    problems.push(`conditions: expected at least one of ${[...FIELDS].join(', ')}`)
  if (name.trim() === '' || name.length > RULE_TEXT_MAX || storable(name, RULE_TEXT_MAX) !== name) {
    problems.push(`name: expected 1 to ${RULE_TEXT_MAX} characters`)
  }
  if (by === '') problems.push('by: expected the name of the user')
  if (reason.trim() === '') problems.push('reason: expected why these are a different failure')
  if (problems.length === 0) return
  throw new RedriveError('POLICY_INVALID', problems.join('\n'), { problems })
}
