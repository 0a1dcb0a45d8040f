/**
 * Follows the README as a new user would: an empty folder, the packed packages, the printed
 * program. Its output must match the README, for each kind of project that `npm init` writes.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { publicPackages, ROOT } from './workspace.ts'

/** Returns the fenced block after `<!-- mark -->`. */
function block(readme: string, mark: string): string {
  const [, after] = readme.split(`<!-- ${mark} -->`)
  const [, text] = after?.match(/```\w*\n([\s\S]*?)```/) ?? []
  if (text === undefined) throw new Error(`README.md has no code block after <!-- ${mark} -->`)
  return text
}

function pack(folder: string): string[] {
  return publicPackages().map(({ name, folder: from }) => {
    const tarball = join(folder, `${name.replace(/\W+/g, '-')}.tgz`)
    execFileSync('pnpm', ['pack', '--out', tarball], { cwd: from, stdio: 'ignore' })
    return tarball
  })
}

execFileSync('tsc', ['-b'], { cwd: ROOT, stdio: 'inherit' })
const readme = readFileSync(join(ROOT, 'README.md'), 'utf8')
const program = block(readme, 'readme-program: orders.mts')
const expected = block(readme, 'readme-output')
const folder = mkdtempSync(join(tmpdir(), 'redrive-readme-'))
try {
  writeFileSync(join(folder, 'orders.mts'), program)
  const install = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--loglevel=error']
  writeFileSync(join(folder, 'package.json'), '{}')
  execFileSync('npm', [...install, ...pack(folder)], { cwd: folder, stdio: 'inherit' })
  const installed = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as object
  for (const type of ['commonjs', 'module']) {
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ ...installed, type }))
    const printed = execFileSync(process.execPath, ['orders.mts'], {
      ...{ cwd: folder, encoding: 'utf8' },
    })
    const isTrue = printed === expected
    if (!isTrue) console.error(`The README shows:\n${expected}\nIts program prints:\n${printed}`)
    console.log(
      `${isTrue ? 'PASS' : 'SHORT'} readme program in a ${type} project prints what the README says, goal the same text`,
    )
    if (!isTrue) process.exitCode = 1
  }
} finally {
  rmSync(folder, { recursive: true })
}
