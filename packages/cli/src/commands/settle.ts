import type { Client, Input } from '@redrive/api'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print } from '../print.ts'
import { connect } from '../server/connect.ts'
import { certainId, certainIds } from '../server/ids.ts'
import { confirmed, mutate } from '../server/mutate.ts'
import { counted } from '../text/words.ts'

export interface SettleOptions extends CommonOptions {
  readonly group?: string
}

type Selection = Input<'discard'>['body']

const WORDS = {
  discard: { question: 'Discard', done: 'discarded', undo: 'redrive restore undoes it.' },
  restore: { question: 'Restore', done: 'restored', undo: '' },
} as const

/** Discards or restores: ids, or all of a group. */
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
  const { changed, skipped } = settled.answer
  print(io, options, {
    json: settled.answer,
    human: (page) => {
      page.line`${counted(changed, 'message')} ${done}. ${undo}`
      if (skipped.length > 0)
        page.line`${counted(skipped.length, 'message')} skipped, not in a status that allows it:`
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
      'Name messages by their ids, or all open ones of a group with --group.',
    )
  }
  if (group !== undefined) return { group: await certainId(io, client, 'group', group) }
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

export interface DecideOptions extends CommonOptions {
  readonly as: 'resolved' | 'open'
}

/** What became of replays of which nobody heard. */
export async function decide(
  io: Io,
  given: readonly string[],
  options: DecideOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const ids = await certainIds(io, client, 'message', given)
  const asked = await mutate(io, client, options, 'decide', { body: { ids, as: options.as } })
  if (asked === undefined) return EXIT.ok
  const { decided, skipped } = asked.answer
  print(io, options, {
    json: asked.answer,
    human: (page) =>
      page.line`${counted(decided, 'message')} now ${options.as}, ${skipped.length} skipped.`,
  })
  return batchExit(decided, skipped.length)
}
