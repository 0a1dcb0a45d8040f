/** Writes log lines. `console`, pino and winston have this shape. */
export interface Logger {
  warn(line: string): void
  error(line: string): void
}

/** Writes one line to stderr, with the time and the level. */
function writeLine(level: 'warn' | 'error', line: string): void {
  process.stderr.write(`${new Date().toISOString()} redrive ${level} ${line}\n`)
}

/** The default logger. */
export const stderrLogger: Logger = {
  warn: (line) => writeLine('warn', line),
  error: (line) => writeLine('error', line),
}
