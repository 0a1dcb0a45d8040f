/**
 * Follows the README and "Get started" as a new user would: an empty folder, the packed packages, the
 * printed programs. Their output must match the page, for each kind of project that `npm init` writes.
 * A page marks a program with `<!-- program: FILE -->` and its output with `<!-- output: FILE -->`.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { documentationPages, publicPackages, ROOT } from './workspace.ts'

interface Program {
  readonly page: string
  readonly file: string
}

function programsOf(page: string): readonly Program[] {
  const text = readFileSync(join(ROOT, page), 'utf8')
  return [...text.matchAll(/<!-- output: (\S+) -->/g)].map(([, file = '']) => ({ page, file }))
}

const PROGRAMS = documentationPages().flatMap(programsOf)

/** Returns the fenced block after `<!-- mark -->`. */
function block(page: string, mark: string): string {
  const [, after] = readFileSync(join(ROOT, page), 'utf8').split(`<!-- ${mark} -->`)
  const [, text] = after?.match(/```\w*\n([\s\S]*?)```/) ?? []
  if (text === undefined) throw new Error(`${page} has no code block after <!-- ${mark} -->`)
  return text
}

function pack(folder: string): string[] {
  return publicPackages().map(({ name, folder: from }) => {
    const tarball = join(folder, `${name.replace(/\W+/g, '-')}.tgz`)
    execFileSync('pnpm', ['pack', '--out', tarball], { cwd: from, stdio: 'ignore' })
    return tarball
  })
}

/** Runs the program in a project of this type. */
function tryProgram(folder: string, type: string, { page, file }: Program): void {
  const expected = block(page, `output: ${file}`)
  const printed = execFileSync(process.execPath, [file], { cwd: folder, encoding: 'utf8' })
  const isTrue = printed === expected
  if (!isTrue) console.error(`${page} shows:\n${expected}\nIts program prints:\n${printed}`)
  console.log(
    `${isTrue ? 'PASS' : 'SHORT'} the program of ${page} in a ${type} project prints what the page shows, goal the same text`,
  )
  if (!isTrue) process.exitCode = 1
}

execFileSync('tsc', ['-b'], { cwd: ROOT, stdio: 'inherit' })
const folder = mkdtempSync(join(tmpdir(), 'redrive-readme-'))
try {
  for (const { page, file } of PROGRAMS)
    writeFileSync(join(folder, file), block(page, `program: ${file}`))
  const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
  writeFileSync(join(folder, 'package.json'), '{}')
  execFileSync('npm', [...install, ...pack(folder)], { cwd: folder, stdio: 'inherit' })
  const installed = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as object
  for (const type of ['commonjs', 'module']) {
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...installed, type }))
    for (const program of PROGRAMS) tryProgram(folder, type, program)
  }
} finally {
  rmSync(folder, { recursive: true })
}
