import { parseDuration } from '@redrive/core'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { type Bottleneck, type Load, type Size, sizeOf } from '../size/model.ts'

export interface SizeOptions extends CommonOptions {
  readonly messagesPerDay?: number
  readonly failures?: number
  readonly retention?: string
  readonly bodyBytes?: number
  readonly sources?: number
  readonly processes?: number
}

const DAY_MS = 86_400_000
const GB = 1_000_000_000

/** Estimates rows, disk and connections of the server, and the size at which each limit is reached. */
export function size(io: Io, options: SizeOptions): ExitCode {
  const load = loadOf(options)
  const result = sizeOf(load)
  const isJson = options.json === true || options.jsonl === true
  io.stdout.write(isJson ? `${JSON.stringify({ load, ...result })}\n` : textOf(result))
  return EXIT.ok
}

function loadOf(options: SizeOptions): Load {
  const { messagesPerDay = 10_000_000, failures = 0.001, retention = '14d' } = options
  const { bodyBytes = 1_000, sources = 10, processes = 2 } = options
  const retentionDays = (parseDuration(retention) ?? Number.NaN) / DAY_MS
  const problems = [
    ...(failures >= 0 && failures <= 1 ? [] : ['--failures: expected a share from 0 to 1']),
    ...(retentionDays > 0
      ? []
      : [`--retention: expected a duration such as 14d, got "${retention}"`]),
  ]
  if (problems.length > 0) throw new CommandError(EXIT.usage, problems.join('\n'))
  return { messagesPerDay, failures, retentionDays, bodyBytes, sources, processes }
}

/** Returns the text that the command prints; docs/sizing.md shows it. */
export function textOf({
  deadLettersPerDay,
  rows,
  diskBytes,
  connections,
  bottlenecks,
}: Size): string {
  const facts = [
    ['dead letters per day', short(deadLettersPerDay)],
    ['rows in the catalog', short(rows)],
    ['disk', `${short(diskBytes / GB)} GB`],
    ['connections', short(connections)],
  ] as const
  const lines = facts.map(([name, value]) => `${name.padEnd(42)}${value.padStart(12)}`)
  const table = bottlenecks.map(lineOf)
  return `${lines.join('\n')}\n\n${HEAD}\n${table.join('\n')}\n`
}

const HEAD = `${'LIMIT'.padEnd(42)}${'USED'.padStart(12)}${'OF'.padStart(12)}${'REACHED AT'.padStart(14)}  BASIS`

function lineOf({ name, used, of, basis }: Bottleneck): string {
  const at = used === 0 ? 'never' : `${short(of / used)} x`
  return `${name.padEnd(42)}${short(used).padStart(12)}${short(of).padStart(12)}${at.padStart(14)}  ${basis}`
}

/** Three digits are enough for an estimate. */
const short = (value: number) => Number(value.toPrecision(3)).toLocaleString('en')
