import type { CommonOptions, Io } from './io.ts'
import { Page } from './text/page.ts'
import { safeJson } from './text/safe.ts'

/** A result in its three output formats. */
export interface Printable {
  /** One document, for `--json`. */
  readonly json: unknown
  /** One document per line, for `--jsonl`. Default: `json` in one line. */
  readonly lines?: readonly unknown[]
  readonly human: (page: Page) => void
}

/** Prints data on stdout. */
export function print(io: Io, options: CommonOptions, shown: Printable): void {
  if (options.json) io.stdout.write(`${safeJson(shown.json, 2)}\n`)
  else if (options.jsonl) {
    for (const line of shown.lines ?? [shown.json]) io.stdout.write(`${safeJson(line)}\n`)
  } else shown.human(new Page(io.stdout))
}

/** Returns a function that prints messages on stderr. */
export const say = (io: Io): Page['line'] => new Page(io.stderr).line

/** Returns a function that prints the next command to type on stderr, but only on a terminal. */
export const hint = (io: Io, options: CommonOptions): Page['line'] =>
  isForPeople(options) && io.stdout.isTTY && io.stderr.isTTY ? say(io) : () => undefined

export const isForPeople = ({ json, jsonl }: CommonOptions): boolean => !json && !jsonl
