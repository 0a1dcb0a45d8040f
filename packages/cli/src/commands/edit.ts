import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Output, Client } from '@redrive/api'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { say } from '../print.ts'
import { connect } from '../server/connect.ts'
import { resolveUniqueId } from '../server/resolve-id.ts'
import { confirmed, expectAnswer, mutate } from '../server/mutate.ts'
import { diffLines, hunks } from '../text/diff.ts'
import { Page } from '../text/page.ts'
import { dim, green, red } from '../text/painted.ts'
import { planShown } from './replay.ts'

export interface EditOptions extends CommonOptions {
  readonly note?: string
}

/** Opens the body in an editor, shows the changes, and plans a replay. The original is kept. */
export async function editMessage(io: Io, given: string, options: EditOptions): Promise<ExitCode> {
  // Checked before the editor opens, so that no work is lost.
  expectAnswer(io, options, QUESTION)
  const client = connect(io, options)
  const id = await resolveUniqueId(io, client, 'message', given)
  const params = { params: { id } }
  // The plan contains this version. If the message changes while the editor is open, the server rejects it.
  const { etag } = await client.ask('getDeadLetter', params, { signal: io.signal })
  const query = { reason: options.note ?? 'Edits the body for a replay.' }
  const before = textOf(
    await client.call('getPayload', { ...params, query }, { signal: io.signal }),
  )
  return withDraft(io, id, before, async (path) => {
    const after = await edited(io, path, before)
    if (after === before) {
      throw new CommandError(
        EXIT.failure,
        `The body was not changed, so nothing was planned. To replay it unchanged: redrive replay plan --id ${id}`,
      )
    }
    showDiff(io, before, after)
    await confirmed(io, options, QUESTION)
    return planEdited(io, client, { id, etag, after }, options)
  })
}

const QUESTION = 'Plan a replay with this change?'

interface Edit {
  readonly id: string
  readonly etag: string | undefined
  readonly after: string
}

async function planEdited(
  io: Io,
  client: Client,
  { id, etag, after }: Edit,
  options: EditOptions,
): Promise<ExitCode> {
  const { note } = options
  const body = {
    selection: { ids: [id] },
    change: { edit: Buffer.from(after, 'utf8').toString('base64') },
    ...(note === undefined ? {} : { note }),
  }
  const planned = await mutate(io, client, options, 'planReplay', {
    body,
    ...(etag === undefined ? {} : { ifMatch: etag }),
  })
  return planned === undefined ? EXIT.ok : planShown(io, options, planned.output)
}

function textOf({ text }: Output<'getPayload'>): string {
  if (text !== undefined) return text
  throw new CommandError(
    EXIT.conflict,
    'The body is not text, so an editor would damage it. Use: redrive replay plan --patch',
  )
}

/**
 * Writes the body to a file in a private folder, because it may be secret. Deletes the file afterwards, unless
 * the command failed and the file contains changes of the user.
 */
async function withDraft(
  io: Io,
  id: string,
  text: string,
  work: (path: string) => Promise<ExitCode>,
): Promise<ExitCode> {
  const folder = mkdtempSync(join(io.env.TMPDIR || tmpdir(), 'redrive-'))
  const path = join(folder, `${id}.json`)
  writeFileSync(path, text, { mode: 0o600 })
  let exitCode: ExitCode = EXIT.failure
  try {
    exitCode = await work(path)
    return exitCode
  } finally {
    if (exitCode !== EXIT.ok && isChanged(path, text)) {
      say(io)`Your changes are still in ${path}. Delete the file when you no longer need it.`
    } else rmSync(folder, { recursive: true, force: true })
  }
}

/** Returns whether the file contains changes. An editor may have moved the file away. */
const isChanged = (path: string, text: string): boolean =>
  existsSync(path) && withoutNewEnd(text, readFileSync(path, 'utf8')) !== text

async function edited(io: Io, path: string, text: string): Promise<string> {
  const code = await io.edit(path)
  if (code !== 0)
    throw new CommandError(
      EXIT.failure,
      `The editor ended with exit code ${code}. Nothing was changed.`,
    )
  return withoutNewEnd(text, readFileSync(path, 'utf8'))
}

/** Removes the line end that editors add, if the body had none before. */
const withoutNewEnd = (before: string, after: string): string =>
  !before.endsWith('\n') && after.endsWith('\n') ? after.slice(0, -1) : after

function showDiff(io: Io, before: string, after: string): void {
  const page = new Page(io.stderr)
  for (const line of hunks(diffLines(before, after))) {
    if (line === undefined) page.line`${dim('  …')}`
    else if (line.kind === 'added') page.line`${green(`+ ${line.text}`)}`
    else if (line.kind === 'removed') page.line`${red(`- ${line.text}`)}`
    else page.line`  ${line.text}`
  }
}
