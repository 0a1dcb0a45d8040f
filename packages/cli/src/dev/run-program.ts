import { spawn } from 'node:child_process'
import type { Account } from './account.ts'

export interface ProgramResult {
  readonly code: number
  /** Everything that the program printed. */
  readonly output: string
}

/** The variables that programs of PostgreSQL get. Root starts them as another user, who must not see its secrets. */
const PASSED = ['PATH', 'HOME', 'TZ', 'TMPDIR', 'SystemRoot', 'TEMP']

/** Variables of programs of PostgreSQL. Their messages are in English. */
export const PROGRAM_ENV: Readonly<Record<string, string | undefined>> = {
  ...Object.fromEntries(PASSED.map((name) => [name, process.env[name]])),
  LC_ALL: 'C',
}

/** Runs a program of PostgreSQL to its end. */
export function runPostgresProgram(
  program: string,
  args: readonly string[],
  account: Account | undefined,
): Promise<ProgramResult> {
  // In a separate group, so that Ctrl-C ends it only through the caller.
  const child = spawn(program, args, { ...account, env: PROGRAM_ENV, cwd: '/', detached: true })
  let output = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code: code ?? -1, output: output.trim() }))
  })
}
