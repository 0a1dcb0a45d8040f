import { spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Rule } from './evidence.ts'
import { ROOT } from './services.ts'

/** One change to our own source; the text to find must be there, once or more. */
export interface Edit {
  readonly file: string
  readonly find: string
  readonly replace: string
}

/**
 * A mistake that transports really have, as a change to ours. The scenario named must fail with it,
 * and for that reason; a mutant that survives is a hole in the harness.
 */
export interface Mutant {
  readonly name: string
  readonly edits: readonly Edit[]
  readonly scenario: string
  readonly breaks: Rule
}

/** Shared with the copy: what is installed, and the servers that run already. */
const SHARED = ['node_modules', 'dev', '.services']
const COPIED = ['packages', 'faults']

/** A copy of the sources with the mistake in it. */
async function mutatedCopy({ edits }: Mutant): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'redrive-mutant-'))
  for (const folder of COPIED) {
    await cp(join(ROOT, folder), join(copy, folder), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !/[/\\](dist|test)$/.test(path),
    })
  }
  for (const folder of SHARED) await symlink(join(ROOT, folder), join(copy, folder))
  for (const edit of edits) await apply(copy, edit)
  return copy
}

async function apply(copy: string, { file, find, replace }: Edit): Promise<void> {
  const source = await readFile(join(copy, file), 'utf8')
  if (!source.includes(find))
    throw new Error(`${file} no longer contains what the mutant changes:\n${find}`)
  await writeFile(
    join(copy, file),
    source.replaceAll(find, () => replace),
  )
}

interface Outcome {
  readonly code: number | null
  readonly output: string
}

function play(copy: string, subject: string, { scenario }: Mutant): Promise<Outcome> {
  const main = join(copy, 'faults/src/main.ts')
  const args = ['--conditions=@redrive/source', main, subject, '--quick', '--only', scenario]
  const child = spawn(process.execPath, args, { cwd: copy })
  let output = ''
  const collect = (chunk: unknown) => {
    output += String(chunk)
  }
  child.stdout.on('data', collect)
  child.stderr.on('data', collect)
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })))
}

export interface HuntOptions {
  /** Only those that a scenario should find whose name begins like this. */
  readonly only: string | undefined
  readonly print: (text: string) => void
}

/** Plays every mutant; true when each was caught, for the reason it should be. */
export async function huntMutants(
  subject: string,
  all: readonly Mutant[],
  { only = '', print }: HuntOptions,
): Promise<boolean> {
  const mutants = all.filter(({ scenario }) => scenario.startsWith(only))
  let survivors = 0
  for (const mutant of mutants) {
    const copy = await mutatedCopy(mutant)
    try {
      const { code, output } = await play(copy, subject, mutant)
      const isCaught = code === 1 && output.includes(` × ${mutant.breaks}\n`)
      if (!isCaught) survivors += 1
      print(
        `${isCaught ? 'caught  ' : 'SURVIVED'} ${mutant.name} (${mutant.scenario}: ${mutant.breaks})`,
      )
      if (!isCaught) print(output)
    } finally {
      await rm(copy, { recursive: true })
    }
  }
  const figure = `${survivors} of ${mutants.length} mutants survived, goal 0`
  print(`${survivors === 0 ? 'PASS' : 'SHORT'} faults ${subject} --mutants ${figure}`)
  return survivors === 0
}
