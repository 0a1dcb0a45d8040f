import type { PutBackResult } from '@redrive/server/internal'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { isForPeople, print, say } from '../print.ts'
import { type ConfigOptions, loaded, refusedAsUsage } from '../server/config.ts'
import { number } from '../text/format.ts'

export interface PutBackCommandOptions extends CommonOptions, ConfigOptions {
  /** Starts the ingest of the source again, and puts nothing back. */
  readonly startIngest?: boolean
  /** Skips the confirmation prompt. */
  readonly yes?: boolean
}

/** 1,000 dead letters between two lines of progress. */
const PROGRESS_STEP = 1_000

/** Returns the open dead letters and set-aside messages of a source to its dead-letter queue. */
export async function putBackCommand(
  io: Io,
  source: string,
  options: PutBackCommandOptions,
): Promise<ExitCode> {
  const { putBackSource, startIngestOf } = await import('@redrive/server/internal')
  const { config } = await loaded(io, options)
  if (options.startIngest) {
    await startIngestOf(config, source)
    print(io, options, {
      json: { source, ingest: 'started' },
      human: (page) => page.line`The ingest of "${source}" is started.`,
    })
    return EXIT.ok
  }
  const change = `Move all open dead letters and set-aside messages of "${source}" from the catalog to its dead-letter queue, and stop its ingest`
  if (options.yes !== true && (await io.confirm(`${change}?`)) !== true) {
    throw new CommandError(EXIT.usage, `Nothing was changed. ${change}: add --yes.`)
  }
  let shown = 0
  const onProgress = ({ done, total }: { readonly done: number; readonly total: number }) => {
    if (!isForPeople(options) || done - shown < PROGRESS_STEP) return
    shown = done
    say(io)`${number(done)} of ${number(total)} are in the broker again.`
  }
  const result = await refusedAsUsage(() =>
    putBackSource(config, source, { onProgress, signal: io.signal }),
  )
  print(io, options, { json: { source, ...result }, human: (page) => report(page, source, result) })
  return isComplete(result) ? EXIT.ok : EXIT.failure
}

const isComplete = ({ total, done, refused, replaying, unknown, setAside }: PutBackResult) =>
  done >= total && refused.length + replaying + unknown + setAside === 0

function report(
  page: { readonly line: (parts: TemplateStringsArray, ...values: readonly string[]) => void },
  source: string,
  { total, done, refused, replaying, unknown, setAside }: PutBackResult,
): void {
  page.line`${number(done)} of ${number(total)} open dead letters and set-aside messages of "${source}" are in its dead-letter queue again.`
  for (const { id, reason } of refused.slice(0, 20)) page.line`Not put back: ${id}: ${reason}`
  if (refused.length > 20) page.line`… and ${number(refused.length - 20)} more.`
  if (replaying > 0)
    page.line`${number(replaying)} are being replayed. Wait for the end or cancel the run, then run this command again.`
  if (unknown > 0)
    page.line`${number(unknown)} have an unknown outcome. Set it with: redrive set-outcome`
  if (setAside > 0)
    page.line`${number(setAside)} set-aside messages have a requested replay. Approve it, or withdraw it with: redrive set-aside reopen`
  if (done < total)
    page.line`Not all of them are in the queue yet. Run the command again to continue.`
  page.line`The ingest of "${source}" is stopped. To start it again: redrive put-back ${source} --start-ingest`
}
