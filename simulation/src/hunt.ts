import { spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import type { Mutant } from './mutants.ts'

/** The root of the repository. */
export const ROOT: string = resolve(import.meta.dirname, '../..')

/** 2,000: the mutant that is hardest to find breaks one seed in some hundreds. */
const SEEDS = 2_000
/** 5 min: a surviving mutant plays all seeds in one minute. */
const PLAY_MS = 300_000

/** Copies the sources; installed packages are shared. */
async function copyTree(): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'redrive-mutant-'))
  for (const folder of ['packages', 'simulation']) {
    await cp(join(ROOT, folder), join(copy, folder), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !/[/\\](dist|test)$/.test(path),
    })
  }
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  return copy
}

/** Returns the source with the mistake. Throws when the source no longer contains the text. */
export function mutated(source: string, { file, find, replace }: Mutant): string {
  if (!source.includes(find)) {
    throw new Error(
      `${file} no longer contains the text that the mutant replaces. Update the mutant:\n${find}`,
    )
  }
  return source.replace(find, () => replace)
}

interface Outcome {
  readonly code: number | null
  readonly output: string
}

function simulate(copy: string): Promise<Outcome> {
  const main = join(copy, 'simulation/src/main.ts')
  const options = ['--stop-at-first', '--workers', '1', '--seeds', String(SEEDS)]
  const child = spawn(process.execPath, ['--conditions=@redrive/source', main, ...options], {
    cwd: copy,
    timeout: PLAY_MS,
  })
  let output = ''
  const collect = (chunk: unknown) => {
    output += String(chunk)
  }
  child.stdout.on('data', collect)
  child.stderr.on('data', collect)
  return new Promise((done) => child.on('close', (code) => done({ code, output })))
}

/** The result of one mutant. */
export interface Hunted {
  readonly mutant: Mutant
  /** Whether a promise was reported as broken, with a matching exit code. */
  readonly isCaught: boolean
  readonly output: string
  readonly seconds: number
}

/** Plays one mutant in a copy, and restores the file afterwards. */
async function hunt(copy: string, mutant: Mutant): Promise<Hunted> {
  const startedAt = performance.now()
  const path = join(copy, mutant.file)
  const source = await readFile(path, 'utf8')
  await writeFile(path, mutated(source, mutant))
  const { code, output } = await simulate(copy)
  await writeFile(path, source)
  const isCaught = code === 1 && /^seed \d+: I\d/m.test(output) && /^SHORT simulate/m.test(output)
  return { mutant, isCaught, output, seconds: (performance.now() - startedAt) / 1_000 }
}

export interface HuntOptions {
  /** Number of concurrent mutants, each in a copy of the sources. */
  readonly workers: number
  readonly onPlayed?: (hunted: Hunted, done: number) => void
}

/** Plays the mutants. */
export async function huntAll(
  mutants: readonly Mutant[],
  { workers, onPlayed }: HuntOptions,
): Promise<readonly Hunted[]> {
  const played: Hunted[] = []
  const waiting = mutants.values()
  const lane = async () => {
    const copy = await copyTree()
    try {
      for (const mutant of waiting) {
        const hunted = await hunt(copy, mutant)
        played.push(hunted)
        onPlayed?.(hunted, played.length)
      }
    } finally {
      await rm(copy, { recursive: true })
    }
  }
  await Promise.all(Array.from({ length: Math.min(workers, mutants.length) }, lane))
  return played
}
