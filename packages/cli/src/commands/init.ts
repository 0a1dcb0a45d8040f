import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print, say } from '../print.ts'
import { confirmed } from '../server/mutate.ts'
import { Page } from '../text/page.ts'
import { green } from '../text/painted.ts'
import { configText, type Detected, detect, LISTEN } from './init-text.ts'

const FILE = 'redrive.config.yaml'

/** Shows and writes a first config for the project in this directory. Never changes an existing config. */
export async function initCommand(io: Io, options: CommonOptions): Promise<ExitCode> {
  const { CONFIG_FILES } = await import('@redrive/server/internal')
  const existing = CONFIG_FILES.find((name) => existsSync(join(io.cwd, name)))
  if (existing !== undefined) throw alreadyExists(existing)
  const detected = detect(dependenciesIn(io.cwd), io.env)
  const text = configText(detected)
  if (!options.json && !options.jsonl) show(io, detected, text)
  if (!options.dryRun) {
    await confirmed(io, options, `Write ${FILE}?`)
    write(join(io.cwd, FILE), text)
  }
  const isWritten = !options.dryRun
  print(io, options, {
    json: { file: join(io.cwd, FILE), isWritten, detected: detected.because, text },
    human: (page) => {
      if (!isWritten) return page.line`Nothing was written.`
      page.line`Wrote ${FILE}. Next: redrive config validate, redrive migrate, redrive serve.`
      page.line`Before you use other commands: export REDRIVE_URL=http://${LISTEN}`
    },
  })
  return EXIT.ok
}

const alreadyExists = (name: string) =>
  new CommandError(
    EXIT.conflict,
    `${name} already exists and was not changed. Print it with: redrive config print`,
  )

/** Prints the new config as a diff on stderr, so that the user can decide. */
function show(io: Io, { because }: Detected, text: string): void {
  for (const one of because) say(io)`Found ${one}.`
  if (because.length === 0)
    say(io)`Found no broker in package.json or the environment. The config contains an example.`
  const page = new Page(io.stderr)
  page.line`--- /dev/null`
  page.line`+++ ${FILE}`
  for (const line of text.trimEnd().split('\n')) page.line`${green(`+${line}`)}`
}

/** Writes the file, unless another process has created it. */
function write(path: string, text: string): void {
  try {
    writeFileSync(path, text, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw alreadyExists(FILE)
    throw error
  }
}

function dependenciesIn(cwd: string): readonly string[] {
  const file = join(cwd, 'package.json')
  if (!existsSync(file)) return []
  const found = parsed(file)
  return ['dependencies', 'devDependencies', 'peerDependencies'].flatMap((kind) => {
    const names = found[kind]
    return typeof names === 'object' && names !== null ? Object.keys(names) : []
  })
}

function parsed(file: string): Readonly<Record<string, unknown>> {
  try {
    return (JSON.parse(readFileSync(file, 'utf8')) ?? {}) as Readonly<Record<string, unknown>>
  } catch (error) {
    throw new CommandError(EXIT.failure, `Cannot read package.json: ${(error as Error).message}`)
  }
}
