/**
 * `pnpm changelog` prints the notes of the coming release. `--check` only checks the notes. `--release` lets
 * changesets raise the versions and delete the notes, and adds them to CHANGELOG.md of each package.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { isMain, publicPackages, ROOT } from '../check/workspace.ts'
import { addVersion, nextRelease, type Note, readNotes, sections } from './notes.ts'

function versions(): ReadonlyMap<string, string> {
  return new Map(
    publicPackages().map(({ name, folder }) => {
      const text = readFileSync(join(folder, 'package.json'), 'utf8')
      return [name, (JSON.parse(text) as { version: string }).version]
    }),
  )
}

/** The texts of changesets itself are off in its config: they contain commits and a line per dependency. */
function release(notes: readonly Note[]): void {
  const before = versions()
  execFileSync('changeset', ['version'], { cwd: ROOT, stdio: 'inherit' })
  const after = versions()
  for (const { name, folder } of publicPackages()) {
    const version = after.get(name)
    if (version === undefined || version === before.get(name)) continue
    const file = join(folder, 'CHANGELOG.md')
    const current = existsSync(file) ? readFileSync(file, 'utf8') : undefined
    writeFileSync(file, addVersion(current, { name, version, text: sections(notes, name) }))
  }
}

if (isMain(import.meta)) {
  const [mode] = process.argv.slice(2)
  const packages = publicPackages().map(({ name }) => name)
  const { notes, problems } = readNotes(ROOT, packages)
  for (const problem of problems) console.error(problem)
  process.exitCode = problems.length > 0 ? 1 : 0
  if (problems.length === 0 && mode === '--release') release(notes)
  if (mode === undefined) process.stdout.write(nextRelease(notes, packages))
}
