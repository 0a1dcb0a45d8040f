import type { Delivery, Drop, Settle } from '@redrive/core'
import type { ReplayConfirmation } from './ports/dead-letter-source.ts'

/** The version at the start of each confirmation. A later version may have another meaning. */
const VERSION = 1
/** 64 KiB: far more than a replay id. A longer message comes from another program. */
const LONGEST_BYTES = 65_536

const OUTCOMES: ReadonlySet<unknown> = new Set<ReplayConfirmation['outcome']>([
  'handled',
  'already_handled',
  'dropped',
])

/** Serializes a consumer's confirmation of a replay for the broker: one line of JSON. */
export function serializeConfirmation(
  { replayId }: Delivery,
  decision: Settle | Drop,
  at: number,
): Buffer {
  const outcome = decision.kind === 'drop' ? 'dropped' : decision.reason
  return Buffer.from(JSON.stringify({ version: VERSION, replayId, outcome, at }))
}

/** Parses a confirmation. Returns undefined for other content or an unknown version: any program can write to a queue. */
export function parseConfirmation(bytes: Uint8Array): ReplayConfirmation | undefined {
  if (bytes.length > LONGEST_BYTES) return undefined
  const { version, replayId, outcome, at } = parse(bytes)
  const isKnown = version === VERSION && OUTCOMES.has(outcome)
  if (!isKnown || typeof replayId !== 'string' || typeof at !== 'number') return undefined
  return { replayId, outcome: outcome as ReplayConfirmation['outcome'], at }
}

function parse(bytes: Uint8Array): Readonly<Record<string, unknown>> {
  try {
    return { ...(JSON.parse(new TextDecoder().decode(bytes)) as object | null) }
  } catch {
    // Not JSON, so it is not a confirmation.
    return {}
  }
}
