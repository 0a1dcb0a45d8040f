import type { Run } from '../database.ts'
import { sha256Of } from '../ingest/identity.ts'
import { readDrained } from '../read/payload.ts'
import { changed, NotChangeable } from './change.ts'
import { exactJson, NotExact } from './exact-json.ts'
import type { Candidate, Verdict } from './gates.ts'
import type { ReplayChange } from './options.ts'
import type { ReplayParts } from './parts.ts'
import { Validator } from './validator.ts'

/** A candidate that went through all gates. */
export interface Examined extends Candidate {
  readonly verdict: Verdict
  readonly why?: string
  /** SHA-256 of the changed body, hex. */
  readonly content?: string
}

interface Judged extends Candidate {
  readonly verdict: Verdict
}

interface Aim {
  readonly sourceId: number
  readonly change: ReplayChange | undefined
}

const SCHEMAS = 'select type, schema from redrive_catalog.source_schema where source_id = $1'

/** The gates that need the body: whether the change can be made, and whether the result is one the consumer takes. */
export async function checkBodies(
  run: Run,
  parts: ReplayParts,
  { sourceId, change }: Aim,
  judged: readonly Judged[],
): Promise<readonly Examined[]> {
  const schemas = await run<{ type: string; schema: unknown }>(SCHEMAS, [sourceId])
  const isChanging = change !== undefined && !('force' in change)
  if (!isChanging && schemas.length === 0) return judged
  const byType = new Map(schemas.map(({ type, schema }) => [type, schema]))
  const validator = new Validator(byType)
  const examined: Examined[] = []
  try {
    for (const one of judged) {
      const isLookedAt = one.verdict === 'replay' && (isChanging || validator.knows(one.type))
      examined.push(isLookedAt ? await checkBody(run, parts, change, validator, one) : one)
    }
  } finally {
    await validator.close()
  }
  return examined
}

async function checkBody(
  run: Run,
  { keys }: ReplayParts,
  change: ReplayChange | undefined,
  validator: Validator,
  one: Judged,
): Promise<Examined> {
  try {
    const drained = (await readDrained(run, keys, [{ id: one.id, bytes: one.payload_bytes }])).get(
      one.id,
    )
    if (drained === undefined) throw new NotChangeable('its payload is gone')
    const { bytes } = changed(drained, change).delivery
    const why = validator.knows(one.type)
      ? await validator.problemOf(one.type, exactJson(bytes))
      : undefined
    const content =
      change === undefined || 'force' in change ? undefined : sha256Of(bytes).toString('hex')
    const kept = content === undefined ? one : { ...one, content }
    return why === undefined ? kept : { ...kept, verdict: 'invalid', why }
  } catch (error) {
    if (error instanceof NotChangeable) {
      return { ...one, verdict: 'not_changeable', why: error.message }
    }
    if (!(error instanceof NotExact)) throw error
    const verdict = change === undefined ? 'invalid' : 'not_changeable'
    return { ...one, verdict, why: error.message }
  }
}
