import type { RunSql } from '../../database.ts'
import { sha256Of } from '../../ingest/identity.ts'
import { readDrained } from '../../read/payload.ts'
import { changed, NotChangeable } from '../run/payload-change.ts'
import { exactJson, NotExact } from '../run/exact-json.ts'
import type { Candidate, GateResult } from './gates.ts'
import type { ReplayChange } from '../run/options.ts'
import type { ReplayDeps } from '../run/context.ts'
import { Validator } from './schema-validator.ts'
import { SCHEMAS } from './statements.ts'

/** A candidate with the result of the gates. */
export interface CheckedCandidate extends Candidate {
  readonly verdict: GateResult
  readonly why?: string
  /** SHA-256 of the changed body, hex. */
  readonly content?: string
}

interface BodyCheckOptions {
  readonly sourceId: number
  readonly change: ReplayChange | undefined
}

/** Applies the gates that need the body: whether the change can be applied, and whether the result is valid. */
export async function checkBodies(
  run: RunSql,
  deps: ReplayDeps,
  { sourceId, change }: BodyCheckOptions,
  candidates: readonly CheckedCandidate[],
): Promise<readonly CheckedCandidate[]> {
  const schemas = await run<{ type: string; schema: unknown }>(SCHEMAS, [sourceId])
  const isChanging = change !== undefined && !('force' in change)
  if (!isChanging && schemas.length === 0) return candidates
  const byType = new Map(schemas.map(({ type, schema }) => [type, schema]))
  const validator = new Validator(byType, deps.schemaTimeoutMs)
  const examined: CheckedCandidate[] = []
  try {
    for (const one of candidates) {
      const needsCheck = one.verdict === 'replay' && (isChanging || validator.knows(one.type))
      examined.push(needsCheck ? await checkBody(run, deps, change, validator, one) : one)
    }
  } finally {
    await validator.close()
  }
  return examined
}

async function checkBody(
  run: RunSql,
  { keys, schemaTimeoutMs }: ReplayDeps,
  change: ReplayChange | undefined,
  validator: Validator,
  one: CheckedCandidate,
): Promise<CheckedCandidate> {
  if (validator.isOutOfTime && validator.knows(one.type)) {
    return { ...one, verdict: 'not_checked', why: outOfTime(schemaTimeoutMs) }
  }
  try {
    const drained = (await readDrained(run, keys, [{ id: one.id, bytes: one.payload_bytes }])).get(
      one.id,
    )
    if (drained === undefined) throw new NotChangeable('the payload is missing')
    const { bytes } = changed(drained, change).delivery
    const why = validator.knows(one.type)
      ? await validator.problemOf(one.type, exactJson(bytes))
      : undefined
    const content =
      change === undefined || 'force' in change ? undefined : sha256Of(bytes).toString('hex')
    const checked = content === undefined ? one : { ...one, content }
    return why === undefined ? checked : { ...checked, verdict: 'schema_invalid', why }
  } catch (error) {
    if (error instanceof NotChangeable) {
      return { ...one, verdict: 'patch_failed', why: error.message }
    }
    if (!(error instanceof NotExact)) throw error
    const verdict = change === undefined ? 'schema_invalid' : 'patch_failed'
    return { ...one, verdict, why: error.message }
  }
}

const outOfTime = (ms: number) =>
  `the schema checks of this plan took longer than ${ms} ms. Plan fewer dead letters, or simplify the schema`
