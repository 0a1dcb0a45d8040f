import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { step } from './dev/step.ts'
import { downloadsFolder, storeDownload } from './downloads.ts'
import { CommandError, EXIT, type ExitCode } from './exit.ts'
import { canAsk, type Io } from './io.ts'
import { runNpm } from './npm.ts'
import { VERSION } from './version.ts'

/** A package that only some commands need, and that is too large for the others. */
export interface Extra {
  readonly name: string
  /** A range, as in the peer dependencies of this package. */
  readonly range: string
  /** On disk, with everything that it needs. */
  readonly megabytes: number
}

const EXTRAS: readonly Extra[] = [
  { name: '@redrive/server', range: `^${VERSION}`, megabytes: 126 },
  { name: '@platformatic/kafka', range: '^2.12.1', megabytes: 15 },
]

/** Returns the package whose absence is the reason of an error. */
export function missingExtra(error: unknown): Extra | undefined {
  const { code, message } = (error ?? {}) as { readonly code?: unknown; readonly message?: string }
  if (code !== 'ERR_MODULE_NOT_FOUND') return undefined
  return EXTRAS.find(({ name }) => message?.includes(`'${name}'`))
}

/** Downloads the package, if the user agrees, and runs the command with it. */
export async function runWithExtra(
  io: Io,
  extra: Extra,
  args: readonly string[],
): Promise<ExitCode> {
  const folder = downloadsFolder(io.env, `${extra.name.replace(/\W+/g, '-').slice(1)}-${VERSION}`)
  const program = programIn(folder)
  if (import.meta.url === pathToFileURL(program).href || !(await mayDownload(io, extra, args)))
    throw notInstalled(extra, args)
  if (!existsSync(program))
    await step(io, `Download of ${extra.name}, ${extra.megabytes} MB, once`, () =>
      download(io, extra, folder),
    )
  const { runProgram } = (await import(pathToFileURL(program).href)) as {
    readonly runProgram: (io: Io, args: readonly string[]) => Promise<ExitCode>
  }
  return runProgram(io, args)
}

/** `redrive dev` downloads everything that it needs. Other commands ask first. */
async function mayDownload(
  io: Io,
  { name, megabytes }: Extra,
  args: readonly string[],
): Promise<boolean> {
  if (args[0] === 'dev' || args.includes('--yes')) return true
  if (!canAsk(io)) return false
  return (
    (await io.confirm(`This command needs ${name} (about ${megabytes} MB). Download it?`)) === true
  )
}

const notInstalled = ({ name, megabytes }: Extra, args: readonly string[]) =>
  new CommandError(
    EXIT.failure,
    [
      `redrive ${args[0] ?? ''} needs ${name} (about ${megabytes} MB), which is not installed.`,
      `Install it in your project: npm install redrive ${name}`,
      `Or run the command with it: npx --package redrive --package ${name} redrive ${args[0] ?? ''} …`,
    ].join('\n'),
  )

/** Installs this package and the other one next to it. Another process may do the same at the same time. */
async function download(io: Io, { name, range }: Extra, folder: string): Promise<void> {
  const isReady = () => existsSync(programIn(folder))
  await storeDownload({ what: name, folder, isReady }, async (unfinished) => {
    writeFileSync(join(unfinished, 'package.json'), '{ "private": true }')
    const args = ['install', `redrive@${VERSION}`, `${name}@${range}`]
    const failure = await runNpm(args, { cwd: unfinished, env: io.env, signal: io.signal })
    if (failure === undefined) return
    throw new CommandError(
      EXIT.failure,
      `Cannot download ${name}. npm reported:\n${failure}\nCheck the connection to the registry, or install it in your project: npm install redrive ${name}`,
    )
  })
}

const programIn = (folder: string) => join(folder, 'node_modules/redrive/bundle/program.js')
