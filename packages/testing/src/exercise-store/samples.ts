import type { FailureClass } from '@redrive/core'
import type { OutboundEvent, StoredDeadLetter } from '@redrive/runtime'
import { BINARY, failedCycle, failureOf, text } from '../exercise/samples.ts'

/** 14 November 2023: a fixed time, so that the suite does not depend on today. */
export const START = 1_700_000_000_000

export interface SampleChanges {
  readonly sink?: string
  readonly class?: FailureClass
  readonly job?: string | undefined
  readonly savedAt?: number
  readonly reason?: StoredDeadLetter['reason']
  readonly message?: string
  readonly event?: Partial<OutboundEvent>
}

/** Creates a dead letter with that id. Fields without a change are the same in all. */
export function sample(id: string, changes: SampleChanges = {}): StoredDeadLetter {
  const { sink = 'loki', class: failureClass = 'transient', savedAt = START } = changes
  return {
    id,
    sink,
    reason: changes.reason ?? 'attempts_exhausted',
    failure: failureOf(failureClass, changes.message),
    cycle: failedCycle(2, START),
    job: changes.job,
    savedAt,
    event: {
      id: `event of ${id}`,
      key: `key of ${id}`,
      type: 'order.paid',
      lane: undefined,
      at: START - 5_000,
      bytes: text(JSON.stringify({ id })),
      contentType: 'application/json',
      headers: { traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01' },
      ...changes.event,
    },
  }
}

/** Creates that many dead letters, a second apart. */
export const samples = (count: number, prefix = 'n'): readonly StoredDeadLetter[] =>
  Array.from({ length: count }, (_, number) =>
    sample(`${prefix}${String(number).padStart(4, '0')}`, { savedAt: START + number * 1_000 }),
  )

/** Converts a dead letter to a form that shows every difference: bytes as hex, headers as a list. */
export function comparable({ event, ...rest }: StoredDeadLetter): unknown {
  const { bytes, headers, ...others } = event
  return {
    ...rest,
    event: { ...others, headers: inOrder(Object.entries(headers)), bytes: hex(bytes) },
  }
}

const inOrder = (entries: [string, string][]) =>
  entries.sort(([one], [other]) => (one < other ? -1 : 1))

const hex = (bytes: Uint8Array) =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')

const MEGABYTE = 2 ** 20
const LINES = 'one\ntwo\r\nthree\u2028four\u2029five\u0000six\u0085'
/** The first half of a surrogate pair without the second: text encodings need an escape for it. */
const LONE = 'lone \ud83d and \ude00 back to front'

/** Dead letters with content that a store might change. */
export const AWKWARD: readonly (readonly [what: string, deadLetter: StoredDeadLetter])[] = [
  ['every byte value', sample('binary', { event: { bytes: BINARY, lane: 'lane 7' } })],
  ['no body', sample('empty', { event: { bytes: new Uint8Array() } })],
  ['a body of 1 MB', sample('large', { event: { bytes: pattern(MEGABYTE) } })],
  ['text that looks like several lines', sample('lines', { event: { bytes: text(LINES) } })],
  ['a byte order mark', sample('mark', { event: { bytes: text('\ufeff{}') } })],
  ['UTF-8 cut short', sample('cut', { event: { bytes: text('café').subarray(0, 4) } })],
  ['surrogates as bytes', sample('bytes', { event: { bytes: Uint8Array.of(0xed, 0xa0, 0x80) } })],
  ['a view into a larger buffer', sample('view', { event: { bytes: BINARY.subarray(10, 20) } })],
  [
    'headers with names of the language',
    sample('names', {
      event: { headers: { ['__proto__']: 'kept', constructor: 'kept', toString: 'kept', '': '' } },
    }),
  ],
  [
    'headers of several lines and lone surrogates',
    sample('headers', { event: { headers: { lines: LINES, lone: LONE, [LONE]: 'a name' } } }),
  ],
  [
    'lone surrogates in text fields',
    sample('lone', { job: LONE, message: LONE, event: { type: LONE, lane: LONE, key: LONE } }),
  ],
  ['an id of several lines', sample(`id ${LINES} "quoted" {braces} /slash/ ..`)],
  ['an id that is longer than a file name', sample('long '.repeat(200))],
]

/** Returns bytes without a pattern, so that neither compression nor text hides a change. */
function pattern(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, index) => (index * 31 + (index >> 8) * 17) & 0xff)
}
