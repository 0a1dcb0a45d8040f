/**
 * `tsc -b` checks only the projects that the root tsconfig.json lists. This check compares that list
 * with the folders of the repository: a folder that is missing there would never be type-checked.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

interface RootConfig {
  readonly references: readonly { readonly path: string }[]
}

/** Every folder that the types step would not check, one sentence each. */
export function checkReferences(root: string): string[] {
  const { references } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')) as RootConfig
  const listed = new Set(references.map(({ path }) => path))
  const missing = foldersWith(root, 'tsconfig.json').filter((folder) => !listed.has(folder))
  return [
    ...foldersToCheck(root)
      .filter((folder) => !existsSync(join(root, folder, 'tsconfig.json')))
      .map(
        (folder) => `${folder} has no tsconfig.json: add one, like the one of a package next to it`,
      ),
    ...missing.map(
      (folder) => `tsconfig.json does not list ${folder}: add the line { "path": "${folder}" }`,
    ),
  ]
}

/** The packages and their test folders. */
function foldersToCheck(root: string): string[] {
  return foldersWith(root, 'package.json').flatMap((folder) => {
    const hasTests = globSync(`${folder}/test/**/*.{ts,tsx}`, { cwd: root }).length > 0
    return hasTests ? [folder, `${folder}/test`] : [folder]
  })
}

/** The folders below `root` that contain the file, without what tools install and write. */
function foldersWith(root: string, file: string): string[] {
  const isForeign = (name: string) => /(^|\/)(node_modules|dist|\.[^/]+)$/.test(name)
  return globSync(`*/**/${file}`, { cwd: root, exclude: isForeign }).map(dirname).sort()
}
