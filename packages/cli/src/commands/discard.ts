import type { Client, Input } from '@redrive/api'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print } from '../print.ts'
import { connect } from '../server/connect.ts'
import { resolveUniqueId, certainIds } from '../server/resolve-id.ts'
import { confirmed, mutate } from '../server/mutate.ts'
import { counted } from '../text/format.ts'

export interface SettleOptions extends CommonOptions {
  readonly group?: string
}

type Selection = Input<'discard'>['body']

const WORDS = {
  discard: { question: 'Discard', done: 'discarded', undo: 'To undo it: redrive restore' },
  restore: { question: 'Restore', done: 'restored', undo: '' },
} as const

/** Discards or restores dead letters: by id, or all of a group. */
export async function settle(
  io: Io,
  what: 'discard' | 'restore',
  given: readonly string[],
  options: SettleOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const body = await selectionOf(io, client, given, options.group)
  const { question, done, undo } = WORDS[what]
  const size = await sizeOf(io, client, body)
  if (what === 'discard') await confirmed(io, options, `${question} ${size}?`)
  const settled = await mutate(io, client, options, what, { body })
  if (settled === undefined) return EXIT.ok
  const { changed, skipped } = settled.output
  print(io, options, {
    json: settled.output,
    human: (page) => {
      page.line`${counted(changed, 'message')} ${done}. ${undo}`
      if (skipped.length > 0)
        page.line`${counted(skipped.length, 'message')} skipped, because of the current status:`
      for (const id of skipped) page.line`  ${id}`
    },
  })
  return batchExit(changed, skipped.length)
}

export const batchExit = (done: number, skipped: number): ExitCode => {
  if (skipped === 0) return EXIT.ok
  return done > 0 ? EXIT.partial : EXIT.conflict
}

async function selectionOf(
  io: Io,
  client: Client,
  given: readonly string[],
  group: string | undefined,
): Promise<Selection> {
  if (given.length > 0 === (group !== undefined)) {
    throw new CommandError(
      EXIT.usage,
      'Expected either ids of messages, or --group for all messages of a group.',
    )
  }
  if (group !== undefined) return { group: await resolveUniqueId(io, client, 'group', group) }
  return { ids: await certainIds(io, client, 'message', given) }
}

async function sizeOf(io: Io, client: Client, selection: Selection): Promise<string> {
  if ('ids' in selection) return counted(selection.ids.length, 'message')
  const params = { id: selection.group }
  const { openCount, title, source } = await client.call(
    'getGroup',
    { params },
    { signal: io.signal },
  )
  return `${counted(openCount, 'open message')} of ${source}: ${title}`
}

export interface SetOutcomeOptions extends CommonOptions {
  readonly as: 'resolved' | 'open'
}

/** Sets the outcome of unconfirmed replays. */
export async function setOutcome(
  io: Io,
  given: readonly string[],
  options: SetOutcomeOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const ids = await certainIds(io, client, 'message', given)
  const result = await mutate(io, client, options, 'setOutcomes', { body: { ids, as: options.as } })
  if (result === undefined) return EXIT.ok
  const { changed, skipped } = result.output
  print(io, options, {
    json: result.output,
    human: (page) =>
      page.line`${counted(changed, 'message')} now ${options.as}, ${skipped.length} skipped.`,
  })
  return batchExit(changed, skipped.length)
}
