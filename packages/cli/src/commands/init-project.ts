import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pageUrl } from '../adopt/libraries.ts'
import type { FoundConsumer, Project } from '../adopt/project.ts'
import { CommandError, EXIT } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { say } from '../print.ts'
import { expectAnswer } from '../server/mutate.ts'
import { diffLines, hunks } from '../text/diff.ts'
import { Page } from '../text/page.ts'
import { green, red } from '../text/painted.ts'
import { safe } from '../text/safe.ts'

/** A consumer as the JSON output has it. */
export interface ConsumerReport {
  readonly file: string
  readonly isWritten: boolean
  /** Removed and added lines; a replaced line counts once. Undefined: it must be changed by hand. */
  readonly changedLines: number | undefined
  readonly reasons: readonly string[]
}

/** Prints the libraries of a project on stderr: where they are used, what stays, and their page. */
export function showLibraries(io: Io, { libraries }: Project): void {
  for (const { library, name, files } of libraries) {
    const where = files.length === 0 ? 'in package.json' : `in ${shortList(files)}`
    say(io)`${name} ${where}. Stays as it is: ${library.unchanged}.`
    say(io)`  Guide: ${pageUrl(library.page)}`
  }
}

const shortList = (files: readonly string[]): string =>
  files.length > 3
    ? `${files.slice(0, 3).join(', ')} and ${files.length - 3} more files`
    : files.join(', ')

/** Prints the proposed change of each consumer, and makes it with `--write` after a question. */
export async function adoptConsumers(
  io: Io,
  options: CommonOptions & { readonly write?: boolean },
  { consumers }: Project,
): Promise<readonly ConsumerReport[]> {
  const reports: ConsumerReport[] = []
  for (const consumer of consumers) {
    showConsumer(io, consumer)
    const isWritten = options.write === true && (await writeConsumer(io, options, consumer))
    reports.push(reportOf(consumer, isWritten))
  }
  const isOpen = reports.some(
    ({ isWritten, changedLines }) => !isWritten && changedLines !== undefined,
  )
  if (isOpen && options.write !== true) {
    say(io)`Check the type of the queue, then change these files with: redrive init --write`
  }
  return reports
}

function showConsumer(io: Io, { file, before, proposal }: FoundConsumer): void {
  if (proposal.kind === 'by hand') {
    say(io)`${file}: change this consumer by hand.`
    for (const { line, text } of proposal.reasons) say(io)`  line ${line}: ${text}`
    return
  }
  const page = new Page(io.stderr)
  page.line`--- ${file}`
  page.line`+++ ${file}`
  for (const line of hunks(diffLines(shown(before), shown(proposal.after)))) {
    if (line === undefined) page.line`…`
    else if (line.kind === 'same') page.line` ${line.text}`
    else if (line.kind === 'removed') page.line`${red(`-${line.text}`)}`
    else page.line`${green(`+${line.text}`)}`
  }
}

/** Returns the text without the line ends of Windows, which a terminal shows as characters. */
const shown = (text: string): string => text.replaceAll('\r\n', '\n')

async function writeConsumer(
  io: Io,
  options: CommonOptions,
  { file, proposal }: FoundConsumer,
): Promise<boolean> {
  if (proposal.kind === 'by hand' || options.dryRun === true) return false
  const question = `Change ${file}?`
  expectAnswer(io, options, question)
  const isWanted = options.yes === true || (await io.confirm(safe(question)))
  if (isWanted === undefined) throw new CommandError(EXIT.interrupted, `${file} was not changed.`)
  if (!isWanted) return false
  writeFileSync(join(io.cwd, file), proposal.after)
  return true
}

function reportOf({ file, before, proposal }: FoundConsumer, isWritten: boolean): ConsumerReport {
  if (proposal.kind === 'by hand') {
    const reasons = proposal.reasons.map(({ line, text }) => `line ${line}: ${text}`)
    return { file, isWritten: false, changedLines: undefined, reasons }
  }
  return { file, isWritten, changedLines: changedLines(before, proposal.after), reasons: [] }
}

/** Returns the number of changed lines. A run of removed and added lines counts as its longer side. */
export function changedLines(before: string, after: string): number {
  let [count, removed, added] = [0, 0, 0]
  for (const { kind } of [...diffLines(before, after), { kind: 'same' }]) {
    if (kind === 'removed') removed += 1
    else if (kind === 'added') added += 1
    else {
      count += Math.max(removed, added)
      removed = added = 0
    }
  }
  return count
}
