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

/** Writes a first config for what the project here uses. Shows it before, and never touches one that is there. */
export async function initCommand(io: Io, options: CommonOptions): Promise<ExitCode> {
  const { CONFIG_FILES } = await import('@redrive/server')
  const there = CONFIG_FILES.find((name) => existsSync(join(io.cwd, name)))
  if (there !== undefined) throw thereAlready(there)
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
      page.line`For all other commands: export REDRIVE_URL=http://${LISTEN}`
    },
  })
  return EXIT.ok
}

const thereAlready = (name: string) =>
  new CommandError(
    EXIT.conflict,
    `There is a ${name} already, and it is left as it is. See it with: redrive config print`,
  )

/** As a diff, on stderr: it is what a person decides about. */
function show(io: Io, { because }: Detected, text: string): void {
  for (const one of because) say(io)`Found ${one}.`
  if (because.length === 0)
    say(io)`Found no broker in package.json or the environment: an example is written instead.`
  const page = new Page(io.stderr)
  page.line`--- /dev/null`
  page.line`+++ ${FILE}`
  for (const line of text.trimEnd().split('\n')) page.line`${green(`+${line}`)}`
}

/** Only if nobody wrote one meanwhile. */
function write(path: string, text: string): void {
  try {
    writeFileSync(path, text, { flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw thereAlready(FILE)
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
    throw new CommandError(EXIT.failure, `package.json cannot be read: ${(error as Error).message}`)
  }
}
