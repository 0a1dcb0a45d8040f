/**
 * The environment of a command. A command is a plain function `(io, options) => Promise<ExitCode>`, so a
 * test can pass another environment and check the output.
 */
export interface Io {
  /** Output for data and nothing else, so that other programs can read it. */
  readonly stdout: Output
  /** Messages, progress and questions. */
  readonly stderr: Output
  readonly stdin: Input
  readonly env: Environment
  /** Absolute path. Paths in options are relative to it. */
  readonly cwd: string
  /** Epoch ms. */
  readonly now: () => number
  /** Resolves after `ms`, or when the signal is aborted. */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>
  readonly fetch: typeof globalThis.fetch
  /** Aborted by Ctrl-C (SIGINT), SIGTERM and a closed terminal (SIGHUP). The command then ends soon. */
  readonly signal: AbortSignal
  /** Keeps the process running when the reader of stdout closes. By default the process ends then. */
  readonly outliveReader: () => void
  /** Prompts the user. Called only when `canAsk`. Undefined: Ctrl-C or a signal ended it. */
  readonly confirm: (question: string) => Promise<boolean | undefined>
  /** Opens a file in the editor of the user and resolves with the editor's exit code. */
  readonly edit: (path: string) => Promise<number>
}

/** Environment variables. The config of the server may refer to others by their names. */
export interface Environment extends Readonly<Record<string, string | undefined>> {
  /** Address of the server, such as `https://redrive.example.com`. */
  readonly REDRIVE_URL?: string
  /** API token. There is no flag for it, because other users can see process arguments. */
  readonly REDRIVE_TOKEN?: string
  /** File with an API token, used if `REDRIVE_TOKEN` is not set. */
  readonly REDRIVE_TOKEN_FILE?: string
  /** Name of a profile, used if `REDRIVE_URL` is not set. `--profile` has priority over both. */
  readonly REDRIVE_PROFILE?: string
  /** Config file of the server, used if `--config` is not set. Default: `redrive.config.*` in the current folder. */
  readonly REDRIVE_CONFIG?: string
  /** Folder of `redrive/config.json` with the profiles. Default: `.config` in the home folder. */
  readonly XDG_CONFIG_HOME?: string
  /** Folder of the PostgreSQL that `redrive dev` downloads. Default: `.cache` in the home folder; `/var/cache` for root. */
  readonly XDG_CACHE_HOME?: string
  /** Home folder of the user. */
  readonly HOME?: string
  /** Editor of `redrive edit`. */
  readonly VISUAL?: string
  /** Editor of `redrive edit`, used if `VISUAL` is not set. Default: `vi`. */
  readonly EDITOR?: string
  /** Folder for the temporary file of `redrive edit`. Default: that of the system. */
  readonly TMPDIR?: string
  /** Disables colours, if it is not empty. `--no-color` has the same effect. */
  readonly NO_COLOR?: string
  /** Forces colours, or disables them with `0`. `NO_COLOR` has priority. */
  readonly FORCE_COLOR?: string
  /** Type of the terminal. `dumb` disables colours. */
  readonly TERM?: string
  /** Width of the output, if it is not a terminal. Default: 100. */
  readonly COLUMNS?: string
}

export interface Output {
  readonly write: (text: string) => void
  readonly isTTY: boolean
  /** Width of the terminal, or a default without one. */
  readonly columns: number
  /** Whether to colour text. Depends on `NO_COLOR`, `FORCE_COLOR`, `--no-color` and the terminal. */
  readonly hasColor: boolean
}

export interface Input {
  readonly isTTY: boolean
  /** Lines until the end of the input. */
  readonly lines: () => AsyncIterable<string>
}

/** Returns whether a user can see and answer a prompt. */
export const canAsk = (io: Io): boolean => io.stdin.isTTY && io.stderr.isTTY

/** Options that every command has. */
export interface CommonOptions {
  /** One JSON document on stdout. */
  readonly json?: boolean
  /** One JSON document per line on stdout. */
  readonly jsonl?: boolean
  /** Skips confirmation prompts. */
  readonly yes?: boolean
  /** Prints the request without sending it. */
  readonly dryRun?: boolean
  /** Name of a profile in `$XDG_CONFIG_HOME/redrive/config.json`. */
  readonly profile?: string
}
