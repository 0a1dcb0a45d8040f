import { spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { describe, expect, it } from 'vitest'
import { MUTANTS, type Mutant } from '../src/mutants.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const SEEDS = 2_000

/** A copy of the sources with one mistake in it; installed packages are shared. */
async function mutatedCopy({ file, find, replace }: Mutant): Promise<string> {
  const copy = await mkdtemp(join(tmpdir(), 'redrive-mutant-'))
  for (const folder of ['packages', 'simulation']) {
    await cp(join(ROOT, folder), join(copy, folder), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !/[/\\](dist|test)$/.test(path),
    })
  }
  await symlink(join(ROOT, 'node_modules'), join(copy, 'node_modules'))
  const source = await readFile(join(copy, file), 'utf8')
  expect(source, `${file} no longer contains what the mutant changes`).toContain(find)
  await writeFile(
    join(copy, file),
    source.replace(find, () => replace),
  )
  return copy
}

function simulate(copy: string): Promise<{ code: number | null; output: string }> {
  const main = join(copy, 'simulation/src/main.ts')
  const args = [
    '--conditions=@redrive/source',
    main,
    '--stop-at-first',
    '--workers',
    '1',
    '--seeds',
    String(SEEDS),
  ]
  const child = spawn(process.execPath, args, { cwd: copy })
  let output = ''
  child.stdout.on('data', (chunk) => {
    output += String(chunk)
  })
  child.stderr.on('data', (chunk) => {
    output += String(chunk)
  })
  return new Promise((done) => child.on('close', (code) => done({ code, output })))
}

describe('the simulator', () => {
  it.concurrent.each(MUTANTS)('finds: $name', async (mutant) => {
    const copy = await mutatedCopy(mutant)
    try {
      const { code, output } = await simulate(copy)
      expect(output).toMatch(/^seed \d+: I\d/m)
      expect(output).toContain('SHORT simulate')
      expect(code).toBe(1)
    } finally {
      await rm(copy, { recursive: true })
    }
  })
}, 180_000)
