/**
 * Compares the projects in the root tsconfig.json with the folders of the repository. `tsc -b`
 * checks only listed projects, so a missing folder would never be type-checked.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

interface RootConfig {
  readonly references: readonly { readonly path: string }[]
}

/** Returns one sentence for each folder that the types step would not check. */
export function checkReferences(root: string): string[] {
  const { references } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8')) as RootConfig
  const listed = new Set(references.map(({ path }) => path))
  const missing = foldersWith(root, 'tsconfig.json').filter((folder) => !listed.has(folder))
  return [
    ...foldersToCheck(root)
      .filter((folder) => !existsSync(join(root, folder, 'tsconfig.json')))
      .map((folder) => `${folder} has no tsconfig.json: add one, like that of another package`),
    ...missing.map(
      (folder) => `tsconfig.json does not list ${folder}: add the line { "path": "${folder}" }`,
    ),
  ]
}

/** Returns the packages and their test folders. */
function foldersToCheck(root: string): string[] {
  return foldersWith(root, 'package.json').flatMap((folder) => {
    const hasTests = globSync(`${folder}/test/**/*.{ts,tsx}`, { cwd: root }).length > 0
    return hasTests ? [folder, `${folder}/test`] : [folder]
  })
}

/** Returns the folders below `root` that contain the file, without installed and generated ones. */
function foldersWith(root: string, file: string): string[] {
  const isForeign = (name: string) => /(^|\/)(node_modules|dist|\.[^/]+)$/.test(name)
  return globSync(`*/**/${file}`, { cwd: root, exclude: isForeign }).map(dirname).sort()
}
