/**
 * Everything outside of a command. A command is a plain function `(io, options) => Promise<ExitCode>`, so
 * that a test gives it another world and looks at what came out.
 */
export interface Io {
  /** Data, and nothing else: what a program would read. */
  readonly stdout: Output
  /** Messages, progress and questions. */
  readonly stderr: Output
  readonly stdin: Input
  readonly env: Readonly<Record<string, string | undefined>>
  /** Absolute. Paths of options are relative to it. */
  readonly cwd: string
  /** Epoch ms. */
  readonly now: () => number
  /** Resolves after `ms`, or when the signal is aborted. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>
  readonly fetch: typeof globalThis.fetch
  /** Aborted by Ctrl-C, and when the process is asked to end. A command then ends by itself, soon. */
  readonly signal: AbortSignal
  /** From now on the process goes on when nobody can read its stdout any more. Else it ends then. */
  readonly outliveReader: () => void
  /** Asks a person. Called only when `canAsk`; undefined: they left the question with Ctrl-C. */
  readonly confirm: (question: string) => Promise<boolean | undefined>
  /** Opens a file in the editor of the person and resolves with its exit code when it is closed. */
  readonly edit: (path: string) => Promise<number>
}

export interface Output {
  readonly write: (text: string) => void
  readonly isTTY: boolean
  /** Width of the terminal; without one, what fits into most. */
  readonly columns: number
  /** Whether text may be coloured: `NO_COLOR`, `FORCE_COLOR`, `--no-color` and the terminal decide. */
  readonly hasColor: boolean
}

export interface Input {
  readonly isTTY: boolean
  /** Lines until the end of the input. */
  readonly lines: () => AsyncIterable<string>
}

/** There is a person at the keyboard who sees what is asked. */
export const canAsk = (io: Io): boolean => io.stdin.isTTY && io.stderr.isTTY

/** Options that every command has. */
export interface CommonOptions {
  /** One JSON document on stdout. */
  readonly json?: boolean
  /** One JSON document per line on stdout. */
  readonly jsonl?: boolean
  /** Questions are answered with yes. */
  readonly yes?: boolean
  /** Say what would be asked for, and do nothing. */
  readonly dryRun?: boolean
  /** Name of a profile in `$XDG_CONFIG_HOME/redrive/config.json`. */
  readonly profile?: string
}
