/**
 * Packs every public package as a user would install it, and checks the tarballs. The packed
 * manifest must not refer to our sources, and every way of resolving the package must find types.
 */
import { execFile } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type PublicPackage, publicPackages, ROOT } from './workspace.ts'

const SCRATCH = join(ROOT, '.reports/packages')
const run = promisify(execFile)
/** Every way of resolving. Node loads modules with `require`, so CommonJS may resolve to a module. */
const ATTW = [
  '--profile',
  'strict',
  '--ignore-rules',
  'cjs-resolves-to-esm',
  '--no-definitely-typed',
  '--no-color',
]

/** Returns the problems of one package; each is the output of the tool that found it. */
async function check(found: PublicPackage): Promise<string[]> {
  const tarball = join(SCRATCH, `${found.name.replace(/\W+/g, '-')}.tgz`)
  await run('pnpm', ['pack', '--out', tarball], { cwd: found.folder })
  const answers = await Promise.allSettled([
    checkContents(tarball),
    run('publint', ['--strict', tarball]),
    run('attw', [...ATTW, tarball]),
  ])
  return answers
    .filter((answer) => answer.status === 'rejected')
    .map(({ reason }) => `${found.name}: ${outputOf(reason)}`)
}

async function checkContents(tarball: string): Promise<void> {
  const { stdout: manifest } = await run('tar', ['-xzOf', tarball, 'package/package.json'])
  for (const leak of ['@redrive/source', 'workspace:', 'catalog:']) {
    if (manifest.includes(leak)) throw new Error(`the packed manifest contains "${leak}"`)
  }
  const { stdout: list } = await run('tar', ['-tzf', tarball])
  for (const needed of ['LICENSE', 'README.md', 'dist/index.js', 'dist/index.d.ts']) {
    if (!list.includes(`package/${needed}\n`)) throw new Error(`the tarball has no ${needed}`)
  }
  if (
    list.includes('package/openapi.json\n') &&
    !list.includes('package/dist/console/index.html\n')
  )
    throw new Error('the tarball has no console: run `pnpm build`')
  if (list.includes('tsbuildinfo')) throw new Error('the tarball contains a tsbuildinfo')
}

function outputOf(reason: unknown): string {
  const { message, stdout } = reason as { message: string; stdout?: string }
  return stdout ? `${message}\n${stdout}` : message
}

rmSync(SCRATCH, { recursive: true, force: true })
mkdirSync(SCRATCH, { recursive: true })
// One package at a time, because the three tools above already use the cores of a small machine.
let failed = false
for (const found of publicPackages()) {
  for (const problem of await check(found)) {
    failed = true
    console.error(problem)
  }
}
process.exitCode = failed ? 1 : 0
