import { spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Edit, Mutant, Prey } from './mutant.ts'
import { ROOT, services } from './services.ts'

/** Shared with the copy: installed packages and running servers. */
const SHARED = ['node_modules', 'dev', 'docs', '.services']
const COPIED = ['packages', 'faults', 'ops']

/** Copies the sources once. Each mutant changes the copy and is removed again. */
async function copyTree(): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'redrive-mutant-'))
  for (const folder of COPIED) {
    await cp(join(ROOT, folder), join(copy, folder), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !/[/\\](dist|test)$/.test(path),
    })
  }
  for (const folder of SHARED) await symlink(join(ROOT, folder), join(copy, folder))
  return copy
}

/** Runs `work` with the mistake in the copy, and restores the files afterwards. */
async function withMistake<T>(
  copy: string,
  [, , , ...edits]: Mutant,
  work: () => Promise<T>,
): Promise<T> {
  const before = new Map<string, string>()
  try {
    for (const edit of edits) {
      const path = join(copy, edit[0])
      const source = await readFile(path, 'utf8')
      if (!before.has(path)) before.set(path, source)
      await writeFile(path, edited(source, edit))
    }
    return await work()
  } finally {
    for (const [path, source] of before) await writeFile(path, source)
  }
}

/** Returns the source with the edit. Throws when the source no longer contains the text. */
export function edited(source: string, [file, find, replace]: Edit): string {
  if (!source.includes(find)) {
    throw new Error(
      `${file} no longer contains the text that the mutant replaces. Update the mutant:\n${find}`,
    )
  }
  return source.replaceAll(find, () => replace)
}

interface Outcome {
  readonly code: number | null
  readonly output: string
}

/** 10 min: three times the longest scenario on a busy machine. */
const PLAY_MS = 600_000

function play(copy: string, { name, scenarios }: Prey, [, scenario]: Mutant): Promise<Outcome> {
  const main = join(copy, 'faults/src/main.ts')
  const isInSmoke = scenarios.some((one) => one.isInSmoke && one.name.startsWith(scenario))
  const form = isInSmoke ? '--smoke' : '--quick'
  const options = [name, form, '--only', scenario, '--stop-at-first']
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
  return new Promise((resolve) => child.on('close', (code) => resolve({ code, output })))
}

export interface HuntOptions {
  /** Plays only mutants whose scenario starts with this text. */
  readonly only: string | undefined
  readonly print: (text: string) => void
}

/**
 * Subjects whose mutants play at the same time. The mutants of one subject play in turn, because
 * they restart the same servers. Most of a play is waiting for a server.
 */
const LANES = 2

/** Plays every mutant of these subjects. Returns true when each was caught for the expected reason. */
export async function huntMutants(
  preys: readonly Prey[],
  { only = '', print }: HuntOptions,
): Promise<boolean> {
  const startedAt = performance.now()
  // The subject with the most mutants first, so that no lane ends long before the other.
  const waiting = preys
    .map((prey) => ({
      ...prey,
      mutants: prey.mutants.filter(([, scenario]) => scenario.startsWith(only)),
    }))
    .toSorted((a, b) => b.mutants.length - a.mutants.length)
  const total = waiting.reduce((sum, { mutants }) => sum + mutants.length, 0)
  // Starts the servers before the copies exist. A server started from a copy would lose its files
  // with it.
  for (const service of new Set(waiting.flatMap((prey) => prey.services))) {
    await services('up', service)
  }
  let played = 0
  let survivors = 0
  async function playLane(): Promise<void> {
    const copy = await copyTree()
    try {
      for (let prey = waiting.shift(); prey !== undefined; prey = waiting.shift()) {
        for (const mutant of prey.mutants) {
          const { isCaught, text } = await hunt(copy, prey, mutant)
          played += 1
          if (!isCaught) survivors += 1
          print(`[${played}/${total}] ${text}`)
        }
      }
    } finally {
      await rm(copy, { recursive: true })
    }
  }
  await Promise.all(preys.slice(0, LANES).map(playLane))
  const [one, ...others] = preys
  const name = others.length > 0 ? 'all' : (one?.name ?? '')
  const isGood = survivors === 0 && total > 0
  const figure = `${survivors} of ${total} mutants survived in ${secondsSince(startedAt)} s, goal 0`
  print(`${isGood ? 'PASS' : 'SHORT'} faults ${name} --mutants ${figure}`)
  return isGood
}

const secondsSince = (at: number) => ((performance.now() - at) / 1_000).toFixed(0)

interface Hunted {
  readonly isCaught: boolean
  readonly text: string
}

/** Plays one mutant. A mutant that cannot be applied counts as a survivor. */
async function hunt(copy: string, prey: Prey, mutant: Mutant): Promise<Hunted> {
  const startedAt = performance.now()
  const [name, scenario, breaks] = mutant
  try {
    const { code, output } = await withMistake(copy, mutant, () => play(copy, prey, mutant))
    const isCaught = code === 1 && output.includes(` × ${breaks}\n`)
    const verdict = isCaught ? 'caught  ' : 'SURVIVED'
    const line = `${verdict} ${prey.name}: ${name} (${scenario}: ${breaks}), ${secondsSince(startedAt)} s`
    return { isCaught, text: isCaught ? line : `${line}\n${indented(output)}` }
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error)
    return { isCaught: false, text: `STALE    ${prey.name}: ${name}\n${indented(problem)}` }
  }
}

/** Indents the lines of a played scenario, so that only the verdict line starts at the margin. */
const indented = (text: string) => text.replace(/^/gm, '  ')
