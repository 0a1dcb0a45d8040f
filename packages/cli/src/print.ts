import type { CommonOptions, Io } from './io.ts'
import { Page } from './text/page.ts'
import { safeJson } from './text/safe.ts'

/** The same answer in the three ways that it can be asked for. */
export interface Shown {
  /** One document. */
  readonly json: unknown
  /** One document in each line. Default: the one document in one line. */
  readonly lines?: readonly unknown[]
  readonly human: (page: Page) => void
}

/** Data, on stdout. */
export function print(io: Io, options: CommonOptions, shown: Shown): void {
  if (options.json) io.stdout.write(`${safeJson(shown.json, 2)}\n`)
  else if (options.jsonl) {
    for (const line of shown.lines ?? [shown.json]) io.stdout.write(`${safeJson(line)}\n`)
  } else shown.human(new Page(io.stdout))
}

/** Messages, on stderr. */
export const say = (io: Io): Page['line'] => new Page(io.stderr).line

/** What to type next, on stderr: for someone at the terminal, and no part of the answer. */
export const hint = (io: Io, options: CommonOptions): Page['line'] =>
  isForPeople(options) && io.stdout.isTTY && io.stderr.isTTY ? say(io) : () => undefined

export const isForPeople = ({ json, jsonl }: CommonOptions): boolean => !json && !jsonl
