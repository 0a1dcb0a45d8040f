import { type Duration, parseDuration, RedriveError } from '@redrive/core'
import type { PayloadKeys } from '../seal.ts'
import { NAME_MAX } from '../text.ts'
import { pointerSteps } from './preview.ts'

export interface IngestOptions {
  /**
   * The source's name in the catalog: part of the identity of its dead letters, so never change it. Give
   * one when two brokers have a queue of the same name. Default: the name that the source has itself.
   */
  readonly name?: string
  /** Who handles messages of this source, for people and filters. Default: unknown. */
  readonly handler?: string
  /** Most dead letters in one transaction. 1 to 5,000, default 500. */
  readonly batch?: number
  /** How long a dead letter is kept after it was ingested. Default: as it was said before, at first '14d'. */
  readonly retention?: Duration
  /**
   * Bytes of a body that is kept whole. A larger one is quarantined: its head and its hash are kept, the
   * rest goes when it is released. 1 to 512 MiB, default 128 MiB: more than brokers accept unless told to.
   */
  readonly maxPayloadBytes?: number
  /** JSON Pointers of values to be masked in the preview; `*` stands for every item or key. Default: none. */
  readonly mask?: readonly string[]
  /** Names of headers whose value is masked where people see it, in any case of letters. Default: none. */
  readonly maskHeaders?: readonly string[]
  /**
   * Keeps a copy of JSON bodies for people and filters, masked and in the clear. Default: true, and false
   * when payloads are encrypted.
   */
  readonly preview?: boolean
  /**
   * Values of JSON bodies to find dead letters by, as name and JSON Pointer: `{ order: '/order/id' }`. They
   * are kept in the clear, and neither masked nor encrypted. At most 8, default: none.
   */
  readonly extract?: Readonly<Record<string, string>>
  /** Ends the ingest after the batch at hand. */
  readonly signal?: AbortSignal
}

export interface ResolvedIngest {
  readonly source: string
  readonly handler: string | undefined
  readonly batch: number
  /** Undefined: as it is. */
  readonly retentionMs: number | undefined
  readonly maxPayloadBytes: number
  readonly masks: readonly (readonly string[])[]
  readonly maskedHeaders: ReadonlySet<string>
  readonly isPreviewing: boolean
  readonly extract: ReadonlyMap<string, readonly string[]>
  readonly keys: PayloadKeys | undefined
}

/** 500: one round trip for each table, a few MB of memory, and a crash repeats little. */
const BATCH = 500
const BATCH_MAX = 5_000
/** 14 days: as long as the brokers keep dead letters by default. */
export const RETENTION_MS = 1_209_600_000
const MIB = 1_048_576
const PAYLOAD_BYTES = 128 * MIB
/** 512 MiB: what a Buffer can be put together from without the machine noticing. */
const PAYLOAD_BYTES_MAX = 512 * MIB

export function resolveIngest(
  options: IngestOptions,
  sourceName: string,
  keys?: PayloadKeys,
): ResolvedIngest {
  const { name = sourceName, batch = BATCH, retention } = options
  const { maxPayloadBytes = PAYLOAD_BYTES, mask = [], maskHeaders = [] } = options
  const problems: string[] = []
  if (name === '' || name.length > NAME_MAX) {
    problems.push(`name: expected 1 to ${NAME_MAX} characters, got ${name.length}`)
  }
  if (!isWhole(batch, BATCH_MAX)) problems.push(`batch: expected 1 to ${BATCH_MAX}, got ${batch}`)
  if (!isWhole(maxPayloadBytes, PAYLOAD_BYTES_MAX)) {
    problems.push(`maxPayloadBytes: expected 1 to ${PAYLOAD_BYTES_MAX}, got ${maxPayloadBytes}`)
  }
  const retentionMs = retention === undefined ? undefined : parseDuration(retention)
  if (retention !== undefined && !(retentionMs !== undefined && retentionMs > 0)) {
    problems.push(`retention: expected a duration such as '14d', got ${retention}`)
  }
  const masks = mask.map(pointerSteps)
  mask.forEach((pointer, at) => {
    if (masks[at] === undefined)
      problems.push(`mask: expected a pointer such as '/card/number', got '${pointer}'`)
  })
  const extract = extractOf(options.extract ?? {}, problems)
  if (problems.length > 0) {
    const message = `ingest() cannot start:\n- ${problems.join('\n- ')}`
    throw new RedriveError('POLICY_INVALID', message, { problems })
  }
  return {
    source: name,
    handler: options.handler,
    batch,
    retentionMs,
    maxPayloadBytes,
    masks: masks.filter((steps) => steps !== undefined),
    maskedHeaders: new Set(maskHeaders.map((header) => header.toLowerCase())),
    isPreviewing: options.preview ?? keys === undefined,
    extract,
    keys,
  }
}

/** 8: each is a row beside every dead letter. */
const EXTRACT_MAX = 8
const EXTRACT_NAME_MAX = 64

function extractOf(said: Readonly<Record<string, string>>, problems: string[]) {
  const extract = new Map<string, readonly string[]>()
  for (const [name, pointer] of Object.entries(said)) {
    const steps = pointerSteps(pointer)
    if (steps !== undefined && name !== '' && name.length <= EXTRACT_NAME_MAX)
      extract.set(name, steps)
    else
      problems.push(
        `extract: expected a name of 1 to ${EXTRACT_NAME_MAX} characters and a pointer such as '/order/id', got '${name}': '${pointer}'`,
      )
  }
  if (extract.size > EXTRACT_MAX)
    problems.push(`extract: expected at most ${EXTRACT_MAX}, got ${extract.size}`)
  return extract
}

const isWhole = (value: number, most: number) =>
  Number.isSafeInteger(value) && value >= 1 && value <= most
