import type { Delivery, Drop, Settle } from '@redrive/core'
import type { ReplayConfirmation } from './ports.ts'

/** What each confirmation says first: a later version may mean something else. */
const VERSION = 1
/** 64 KiB: far more than a replay id; what is longer is somebody else's. */
const LONGEST_BYTES = 65_536

const OUTCOMES: ReadonlySet<unknown> = new Set<ReplayConfirmation['outcome']>([
  'handled',
  'already_handled',
  'dropped',
])

/** What a consumer says about a replay as a broker keeps it: one line of JSON. */
export function writeConfirmation(
  { replayId }: Delivery,
  decision: Settle | Drop,
  at: number,
): Buffer {
  const outcome = decision.kind === 'drop' ? 'dropped' : decision.reason
  return Buffer.from(JSON.stringify({ version: VERSION, replayId, outcome, at }))
}

/** Undefined for what is none, or of a version we do not know: anyone can write to a queue. */
export function readConfirmation(bytes: Uint8Array): ReplayConfirmation | undefined {
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
    // Not JSON, so it says nothing.
    return {}
  }
}
