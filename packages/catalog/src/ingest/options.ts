import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { PayloadKeys } from '../encryption.ts'
import { type Mask, resolveMask, type ResolvedMask } from '../masking/mask.ts'
import { NAME_MAX } from '../text.ts'
import { rulesOf } from '../regrouping/named.ts'
import type { FingerprintRule } from '../regrouping/rules.ts'
import { pointerSteps } from '../json-pointer.ts'

export interface IngestOptions {
  /**
   * Name of the source in the catalog. It is part of the identity of its dead letters, so never change it. Set
   * it if two brokers have a queue with the same name. Default: the name of the source itself.
   */
  readonly name?: string
  /** Name of the consumer of this source, for display and filters. Default: unknown. */
  readonly handler?: string
  /** Maximum number of dead letters in one transaction (1 to 5,000, default 500). */
  readonly batch?: number
  /**
   * How long a settled dead letter (resolved, discarded or expired) is kept after its ingest or its last change of
   * status. Default: the stored value of the source, at first '14d'.
   */
  readonly retention?: Duration
  /**
   * The same for dead letters that still need a decision: open, replaying or unknown. A shorter value than
   * `retention` has no effect. Default: the stored value of the source, at first '90d'.
   */
  readonly openRetention?: Duration
  /**
   * Maximum size of the body of a dead letter. A message with a larger body is set aside whole: it is stored, but
   * not grouped and searched. From 1 byte to 512 MiB. The default of 128 MiB is more than brokers accept by
   * default.
   */
  readonly maxPayloadBytes?: number
  /**
   * Maximum size of all bodies that an ingest holds in memory at the same time (1 MiB to 4 GiB, default 64 MiB). The
   * number of dead letters in a batch follows from the size of the previous ones. A larger body is read alone.
   */
  readonly maxBytesInFlight?: number
  /**
   * Values to mask in the preview, by JSON Pointer; `*` matches every item or key. A body in which a mask finds
   * nothing has no preview, unless the mask is optional. Default: none.
   */
  readonly mask?: readonly (string | Mask)[]
  /** Names of headers whose values are masked for display, in upper or lower case. Default: none. */
  readonly maskHeaders?: readonly string[]
  /**
   * Stores a masked, unencrypted copy of JSON bodies for display and filters. Default: true, or false if
   * payloads are encrypted.
   */
  readonly preview?: boolean
  /**
   * Values of JSON bodies for searches, as name and JSON Pointer: `{ order: '/order/id' }`. They are stored
   * without masks and without encryption. At most 8, default: none.
   */
  readonly extract?: Readonly<Record<string, string>>
  /** Ends the ingest after the current batch. */
  readonly signal?: AbortSignal
}

export interface ResolvedIngest {
  readonly source: string
  readonly handler: string | undefined
  readonly batch: number
  /** Undefined: keep the stored value. */
  readonly retentionMs: number | undefined
  /** Undefined: keep the stored value. */
  readonly openRetentionMs: number | undefined
  readonly maxPayloadBytes: number
  readonly maxBytesInFlight: number
  readonly masks: readonly ResolvedMask[]
  readonly maskedHeaders: ReadonlySet<string>
  readonly isPreviewing: boolean
  readonly extract: ReadonlyMap<string, readonly string[]>
  readonly keys: PayloadKeys | undefined
  /** The fingerprint rules of this source. */
  readonly rules: readonly FingerprintRule[]
}

/** 500: one round trip for each table, a few MB of memory, and little to repeat after a crash. */
const BATCH = 500
const BATCH_MAX = 5_000
/** 14 days: the default retention of dead letters in brokers. */
export const RETENTION_MS = 1_209_600_000
/** 90 days: longer than a holiday and a quarter's freeze. These dead letters still need a decision. */
export const OPEN_RETENTION_MS = 7_776_000_000
const MIB = 1_048_576
const PAYLOAD_BYTES = 128 * MIB
/** 512 MiB: a Buffer of this size can still be joined without straining the machine. */
const PAYLOAD_BYTES_MAX = 512 * MIB

/** 64 MiB: two batches are stored while the next is read, without a noticeable loss of speed. */
const BYTES_IN_FLIGHT = 64 * MIB
const BYTES_IN_FLIGHT_MAX = 4_096 * MIB

export function resolveIngest(
  options: IngestOptions,
  sourceName: string,
  keys?: PayloadKeys,
  rules: readonly FingerprintRule[] = [],
): ResolvedIngest {
  const { name = sourceName, batch = BATCH } = options
  const { maxPayloadBytes = PAYLOAD_BYTES, mask = [], maskHeaders = [] } = options
  const { maxBytesInFlight = BYTES_IN_FLIGHT } = options
  const problems: string[] = []
  if (name === '' || name.length > NAME_MAX) {
    problems.push(`name: expected 1 to ${NAME_MAX} characters, got ${name.length}`)
  }
  if (!isWhole(batch, BATCH_MAX)) problems.push(`batch: expected 1 to ${BATCH_MAX}, got ${batch}`)
  if (!isWhole(maxPayloadBytes, PAYLOAD_BYTES_MAX)) {
    problems.push(`maxPayloadBytes: expected 1 to ${PAYLOAD_BYTES_MAX}, got ${maxPayloadBytes}`)
  }
  if (!isWhole(maxBytesInFlight, BYTES_IN_FLIGHT_MAX) || maxBytesInFlight < MIB) {
    problems.push(
      `maxBytesInFlight: expected ${MIB} to ${BYTES_IN_FLIGHT_MAX}, got ${maxBytesInFlight}`,
    )
  }
  const retentionMs = durationOf('retention', options.retention, problems)
  const openRetentionMs = durationOf('openRetention', options.openRetention, problems)
  const masks = mask.map(resolveMask)
  mask.forEach((one, at) => {
    if (masks[at] !== undefined) return
    const pointer = typeof one === 'string' ? one : one.pointer
    problems.push(`mask: expected a JSON Pointer such as '/card/number', got '${pointer}'`)
  })
  const extract = extractOf(options.extract ?? {}, problems)
  if (problems.length > 0) {
    const message = `The options of ingest() are invalid:\n- ${problems.join('\n- ')}`
    throw new RedriveError('POLICY_INVALID', message, { problems })
  }
  return {
    source: name,
    handler: options.handler,
    batch,
    retentionMs,
    openRetentionMs,
    maxPayloadBytes,
    maxBytesInFlight,
    masks: masks.filter((one) => one !== undefined),
    maskedHeaders: new Set(maskHeaders.map((header) => header.toLowerCase())),
    isPreviewing: options.preview ?? keys === undefined,
    extract,
    keys,
    rules: rulesOf(rules, name),
  }
}

/** 8: each value is one more row for every dead letter. */
const EXTRACT_MAX = 8
const EXTRACT_NAME_MAX = 64

function extractOf(pointers: Readonly<Record<string, string>>, problems: string[]) {
  const extract = new Map<string, readonly string[]>()
  for (const [name, pointer] of Object.entries(pointers)) {
    const steps = pointerSteps(pointer)
    if (steps !== undefined && name !== '' && name.length <= EXTRACT_NAME_MAX)
      extract.set(name, steps)
    else
      problems.push(
        `extract: expected a name of 1 to ${EXTRACT_NAME_MAX} characters and a JSON Pointer such as '/order/id', got '${name}': '${pointer}'`,
      )
  }
  if (extract.size > EXTRACT_MAX)
    problems.push(`extract: expected at most ${EXTRACT_MAX} entries, got ${extract.size}`)
  return extract
}

function durationOf(name: string, value: Duration | undefined, problems: string[]) {
  if (value === undefined) return undefined
  const ms = parseDuration(value)
  if (ms !== undefined && ms > 0) return ms
  problems.push(`${name}: expected a duration such as '14d', got '${value}'`)
  return undefined
}

const isWhole = (value: number, most: number) =>
  Number.isSafeInteger(value) && value >= 1 && value <= most
