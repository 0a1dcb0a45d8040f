import { closeSync, openSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import type { Io } from '../io.ts'
import { say } from '../print.ts'
import { yellow } from '../text/painted.ts'

/** A log file whose warnings also appear on the terminal. */
export interface DevLog {
  /** Writes a line of the server: a JSON document. */
  readonly write: (line: string) => void
  close(): void
}

/** The level of warnings in lines of the server. */
const WARN = 40

/** Opens `server.log`. Each start continues it. */
export function openLog(io: Io, folder: string): DevLog & { readonly path: string } {
  const path = join(folder, 'server.log')
  const file = openSync(path, 'a', 0o600)
  let isOpen = true
  return {
    path,
    write(line) {
      if (!isOpen) return
      writeSync(file, line)
      const { level, msg } = JSON.parse(line) as { readonly level: number; readonly msg?: string }
      if (level >= WARN && msg !== undefined) say(io)`${yellow('Warning:')} ${msg}`
    },
    close() {
      isOpen = false
      closeSync(file)
    },
  }
}
