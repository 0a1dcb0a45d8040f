import { globSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

export const ROOT: string = resolve(import.meta.dirname, '../..')

/**
 * Returns true for the program that Node was started with; `import.meta.main` is missing in Node
 * 22.
 */
export function isMain({ filename }: ImportMeta): boolean {
  const started = process.argv[1]
  return started !== undefined && realpathSync(started) === filename
}

export interface PublicPackage {
  readonly name: string
  /** Absolute path. */
  readonly folder: string
}

/** Returns the published packages in a stable order. */
export function publicPackages(): PublicPackage[] {
  return globSync('packages/{*,*/*}/package.json', { cwd: ROOT })
    .filter((path) => !path.includes('node_modules'))
    .sort()
    .map((path) => ({ folder: join(ROOT, dirname(path)), ...readManifest(join(ROOT, path)) }))
    .filter((found) => found.private !== true)
}

/**
 * Returns the pages for users, in a stable order. The READMEs of examples are not among them: they show
 * parts of programs that `tsc -b` compiles.
 */
export function documentationPages(): string[] {
  const pages = ['README.md', 'docs/**/*.md', 'packages/**/README.md']
  return globSync(pages, { cwd: ROOT, exclude: ['**/node_modules'] }).sort()
}

function readManifest(path: string): { name: string; private?: boolean } {
  return JSON.parse(readFileSync(path, 'utf8')) as { name: string; private?: boolean }
}
