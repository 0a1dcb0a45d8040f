import type { Client, Input } from '@redrive/api'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print } from '../print.ts'
import { connect } from '../server/connect.ts'
import { readFilter } from '../server/filter.ts'
import { certainIds } from '../server/resolve-id.ts'
import { confirmed, mutate } from '../server/mutate.ts'
import { counted } from '../text/format.ts'

export interface SettleOptions extends CommonOptions {
  readonly id?: readonly string[]
}

type Selection = Input<'discard'>['body']

const WORDS = {
  discard: { question: 'Discard', done: 'discarded', undo: 'To undo it: redrive restore' },
  restore: { question: 'Restore', done: 'restored', undo: '' },
} as const

/** Discards or restores dead letters: by id, or by a filter that is frozen before the prompt. */
export async function settle(
  io: Io,
  what: 'discard' | 'restore',
  words: readonly string[],
  options: SettleOptions,
): Promise<ExitCode> {
  const client = connect(io, options)
  const selected = await selectedBy(io, client, what, words, options)
  if (selected === undefined) return EXIT.ok
  const { question, done, undo } = WORDS[what]
  // A restore by id changes only messages that the user named, and a discard undoes it.
  const isPrompted = what === 'discard' || !('ids' in selected.body)
  if (isPrompted) await confirmed(io, options, `${question} ${selected.size}?`)
  const settled = await mutate(io, client, options, what, { body: selected.body })
  if (settled === undefined) return EXIT.ok
  const { changed, skipped, skippedCount } = settled.output
  print(io, options, {
    json: settled.output,
    human: (page) => {
      page.line`${counted(changed, 'message')} ${done}. ${undo}`
      if (skippedCount > 0)
        page.line`${counted(skippedCount, 'message')} skipped, because of the current status or a change since the selection:`
      for (const id of skipped) page.line`  ${id}`
      if (skippedCount > skipped.length) page.line`  and ${skippedCount - skipped.length} more`
    },
  })
  return batchExit(changed, skippedCount)
}

export const batchExit = (done: number, skipped: number): ExitCode => {
  if (skipped === 0) return EXIT.ok
  return done > 0 ? EXIT.partial : EXIT.conflict
}

interface ServerSelection {
  readonly body: Selection
  /** The exact number and the sources, for the prompt. */
  readonly size: string
}

/** Returns the selection. With a filter, the server stores it first; with `--dry-run` it does not. */
async function selectedBy(
  io: Io,
  client: Client,
  action: 'discard' | 'restore',
  words: readonly string[],
  options: SettleOptions,
): Promise<ServerSelection | undefined> {
  const { id = [] } = options
  if (id.length > 0 === words.length > 0) {
    throw new CommandError(
      EXIT.usage,
      `Expected either a filter such as group:7f3a, or --id with ids of messages: redrive ${action} --id 019c`,
    )
  }
  if (id.length > 0) {
    const ids = await certainIds(io, client, 'message', id)
    return { body: { ids }, size: counted(ids.length, 'message') }
  }
  const { text: filter } = await readFilter(io, client, words, { isUnique: true })
  const frozen = await mutate(io, client, options, 'selectDeadLetters', {
    body: { action, filter },
  })
  if (frozen === undefined) return undefined
  const { id: selection, hash, count, sources } = frozen.output
  return {
    body: { selection, hash },
    size: `${counted(count, 'message')} of ${sources.join(', ')}`,
  }
}
