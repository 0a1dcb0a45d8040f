import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Client, Input, Run } from '@redrive/api'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print, say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { defined, readFilter } from '../server/filter.ts'
import { resolveUniqueId, certainIds, shortIds } from '../server/resolve-id.ts'
import { mutate } from '../server/mutate.ts'
import { bold } from '../text/painted.ts'
import { age, number } from '../text/format.ts'
import { IN_RUN, planText, SETTLED, stateOf, sum } from './run-text.ts'

type PlanRequest = Input<'planReplay'>['body']

export interface PlanOptions extends CommonOptions {
  readonly id?: readonly string[]
  readonly note?: string
  /** `200/s`, `12/min` or a number per second. */
  readonly rate?: string
  /** `1,5,50`. */
  readonly canary?: string
  readonly maxFailureRatio?: number
  readonly outcomeTimeout?: string
  readonly proof?: string
  readonly onUnconfirmed?: string
  readonly maxAge?: string
  readonly inboxRetention?: string
  readonly override?: readonly string[]
  /** A file with a JSON Patch. */
  readonly patch?: string
  readonly force?: boolean
}

/** Freezes a selection and previews its replay. Publishes nothing. */
export async function planReplay(
  io: Io,
  words: readonly string[],
  options: PlanOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const body: PlanRequest = {
    ...settingsOf(io, options),
    selection: await selectedBy(io, client, words, options),
  }
  const planned = await mutate(io, client, options, 'planReplay', { body })
  return planned === undefined ? EXIT.ok : planShown(io, options, planned.output)
}

/** Prints a plan. A plan without messages is a conflict, so that a script does not continue. */
export function planShown(io: Io, options: CommonOptions, run: Run): ExitCode {
  const ready = sum(run.counts, IN_RUN)
  print(io, options, {
    json: run,
    human: (page) => {
      planText(page, run)
      if (ready > 0) page.line`Start it with: redrive replay start ${bold(run.id)}`
      else page.line`None of them can be replayed.`
    },
  })
  return ready > 0 ? EXIT.ok : EXIT.conflict
}

async function selectedBy(
  io: Io,
  client: Client,
  words: readonly string[],
  { id = [] }: PlanOptions,
): Promise<PlanRequest['selection']> {
  if (id.length > 0 && words.length > 0) {
    throw new CommandError(
      EXIT.usage,
      '--id and a filter are mutually exclusive. Use either --id or words such as source:orders.',
    )
  }
  if (id.length > 0) return { ids: await certainIds(io, client, 'message', id) }
  if (words.length === 0) {
    throw new CommandError(
      EXIT.usage,
      'No messages selected. Add a filter such as group:7f3a or source:orders after:2h, or --id.',
    )
  }
  const { text, fields } = await readFilter(io, client, words, { isUnique: true })
  const [group] = fields.groups ?? []
  return group !== undefined && words.length === 1 ? { group } : { filter: text }
}

function settingsOf(io: Io, options: PlanOptions): Omit<PlanRequest, 'selection'> {
  const {
    note,
    rate,
    canary,
    maxFailureRatio,
    outcomeTimeout,
    proof,
    onUnconfirmed,
    maxAge,
    inboxRetention,
    override,
  } = options
  return defined({
    note,
    change: changeOf(io, options),
    ratePerSecond: rate === undefined ? undefined : perSecond(rate),
    canary: canary === undefined ? undefined : stagesOf(canary),
    maxFailureRatio,
    outcomeTimeout,
    proof,
    onUnconfirmed,
    maxAge,
    inboxRetention,
    overrides: override,
  })
}

function changeOf(io: Io, { patch, force }: PlanOptions): PlanRequest['change'] {
  if (force && patch !== undefined) {
    throw new CommandError(
      EXIT.usage,
      '--patch and --force are mutually exclusive: a run either patches bodies or assigns new keys. Remove one of them.',
    )
  }
  if (force) return { force: true }
  if (patch === undefined) return undefined
  const path = resolve(io.cwd, patch)
  try {
    return { patch: JSON.parse(readFileSync(path, 'utf8')) as [] }
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new CommandError(
      EXIT.usage,
      `--patch: cannot read ${path} as a JSON Patch: ${why}. Expected a file with a JSON array of operations.`,
      { cause },
    )
  }
}

const SECONDS: Readonly<Record<string, number>> = { s: 1, min: 60, h: 3_600 }

function perSecond(text: string): number {
  const found = /^(\d+(?:\.\d+)?)(?:\/(s|min|h))?$/.exec(text)
  if (found === null) {
    throw new CommandError(
      EXIT.usage,
      `--rate: expected a rate such as 200/s or 12/min, got "${text}".`,
    )
  }
  return Number(found[1]) / (SECONDS[found[2] ?? 's'] as number)
}

function stagesOf(text: string): number[] {
  if (text === 'none') return []
  const stages = text.split(/[,→ ]+/).map(Number)
  if (stages.every((stage) => Number.isSafeInteger(stage) && stage > 0)) return stages
  throw new CommandError(
    EXIT.usage,
    `--canary: expected sizes such as 1,5,50 or none, got "${text}".`,
  )
}

const VERBS = {
  pauseReplay: 'paused',
  resumeReplay: 'running again',
  cancelReplay: 'cancelled',
} as const

export async function changeRun(
  io: Io,
  operation: keyof typeof VERBS,
  given: string,
  options: CommonOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const id = await resolveUniqueId(io, client, 'run', given)
  const changed = await mutate(io, client, options, operation, { params: { id } })
  if (changed === undefined) return EXIT.ok
  print(io, options, {
    json: changed.output,
    human: (page) => page.line`Run ${id} is ${VERBS[operation]}.`,
  })
  return EXIT.ok
}

export interface ListRunsOptions extends CommonOptions {
  readonly source?: string
  readonly state?: readonly string[]
  readonly limit: number
  readonly cursor?: string
}

export async function listRuns(io: Io, options: ListRunsOptions): Promise<ExitCode> {
  const { source, state, limit, cursor } = options
  const query = defined({ source, states: state, limit, cursor })
  const answer = await connect(io, options).call('listReplays', { query }, { signal: io.signal })
  const short = shortIds(answer.runs.map(({ id }) => id))
  print(io, options, {
    json: answer,
    lines: answer.runs,
    human: (page) => {
      if (answer.runs.length === 0) return page.line`No replay runs.`
      page.table<Run>(
        [
          { title: 'RUN', of: ({ id }) => bold(short(id)) },
          { title: 'STATE', of: stateOf },
          { title: 'DONE', of: ({ counts }) => number(sum(counts, SETTLED)), isNumber: true },
          { title: 'OF', of: ({ counts }) => number(sum(counts, IN_RUN)), isNumber: true },
          {
            title: 'FAILED AGAIN',
            of: ({ counts }) => number(counts.failed_again),
            isNumber: true,
          },
          { title: 'UNKNOWN', of: ({ counts }) => number(counts.unknown), isNumber: true },
          { title: 'PLANNED', of: ({ plannedAt }) => age(io.now() - plannedAt), isNumber: true },
          { title: 'BY', of: ({ plannedBy }) => plannedBy, least: 8 },
          { title: 'SOURCE', of: (run) => run.source, least: 8 },
          { title: 'NOTE', of: ({ note, pauseReason }) => pauseReason ?? note, least: 12 },
        ],
        answer.runs,
      )
    },
  })
  if (answer.nextCursor !== undefined)
    say(io)`More results: add --limit 200, or --cursor ${answer.nextCursor}`
  return EXIT.ok
}
