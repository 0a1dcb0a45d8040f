import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Project } from '../adopt/project.ts'
import { CommandError, EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print, say } from '../print.ts'
import { confirmed } from '../server/mutate.ts'
import { Page } from '../text/page.ts'
import { green } from '../text/painted.ts'
import { adoptConsumers, type ConsumerReport, showLibraries } from './init-project.ts'
import { configText, type DetectedBrokers, detect, LISTEN } from './init-text.ts'

const FILE = 'redrive.config.yaml'

export interface InitOptions extends CommonOptions {
  /** Changes the consumers of the project, after a question for each file. */
  readonly write?: boolean
}

/**
 * Shows and writes a first config for the project in this directory, and shows how its consumers change. Never changes
 * an existing config. Changes consumers only with `--write`.
 */
export async function initCommand(io: Io, options: InitOptions): Promise<ExitCode> {
  const { CONFIG_FILES } = await import('@redrive/server/light')
  const { readProject } = await import('../adopt/project.ts')
  const existing = CONFIG_FILES.find((name) => existsSync(join(io.cwd, name)))
  if (existing !== undefined && options.write !== true) throw alreadyExists(existing)
  const dependencies = dependenciesIn(io.cwd)
  const project = readProject(io.cwd, dependencies)
  const detected = detect(dependencies, importsOf(project), io.env)
  const text = configText(detected)
  if (existing === undefined && !options.json && !options.jsonl) show(io, detected, text)
  showLibraries(io, project)
  const isWritten = existing === undefined && options.dryRun !== true
  if (isWritten) {
    await confirmed(io, options, `Write ${FILE}?`)
    write(join(io.cwd, FILE), text)
  }
  const consumers = await adoptConsumers(io, options, project)
  const file = join(io.cwd, existing ?? FILE)
  const { because } = detected
  print(io, options, {
    json: { file, isWritten, detected: because, text, consumers },
    human: (page) => showResult(page, isWritten, consumers),
  })
  return EXIT.ok
}

function showResult(page: Page, isWritten: boolean, consumers: readonly ConsumerReport[]): void {
  const changed = consumers.filter((one) => one.isWritten)
  for (const one of changed) page.line`Changed ${one.file}: ${one.changedLines ?? 0} lines.`
  if (changed.length > 0) page.line`Install the packages that they import, and run your tests.`
  if (!isWritten && changed.length === 0) page.line`Nothing was written.`
  if (!isWritten) return
  page.line`Wrote ${FILE}. Next: redrive config validate, redrive migrate, redrive serve.`
  page.line`Before you use other commands: export REDRIVE_URL=http://${LISTEN}`
}

const alreadyExists = (name: string) =>
  new CommandError(
    EXIT.conflict,
    `${name} already exists and was not changed. Print it with: redrive config print`,
  )

/** Prints the new config as a diff on stderr, so that the user can decide. */
function show(io: Io, { because }: DetectedBrokers, text: string): void {
  for (const one of because) say(io)`Found ${one}.`
  if (because.length === 0)
    say(
      io,
    )`Found no broker in package.json, the source files or the environment. The config contains an example.`
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

/** Returns the first file that imports each library. */
const importsOf = ({ libraries }: Project): ReadonlyMap<string, string> =>
  new Map(
    libraries.flatMap(({ name, files: [file] }) => (file === undefined ? [] : [[name, file]])),
  )

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
    // Some editors begin a file with a byte order mark, which npm ignores.
    const text = readFileSync(file, 'utf8').replace(/^\uFEFF/, '')
    return (JSON.parse(text) ?? {}) as Readonly<Record<string, unknown>>
  } catch (error) {
    throw new CommandError(EXIT.failure, `Cannot read package.json: ${(error as Error).message}`)
  }
}
