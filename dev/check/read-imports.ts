import { readFileSync } from 'node:fs'
import { parseSync, type Span } from 'oxc-parser'

export interface Import {
  readonly specifier: string
  readonly line: number
  /** The imported name; undefined for the whole module. */
  readonly name: string | undefined
  /** The name under which it is exported again; undefined when it is not. */
  readonly exportedAs?: string
}

/**
 * Returns the modules that a file imports or exports from, types included, with one entry for each
 * name.
 */
export function readImports(path: string): Import[] {
  const text = readFileSync(path, 'utf8')
  const { staticImports, staticExports, dynamicImports } = parseSync(path, text).module
  const found = ({ start, end }: Span, name: string | undefined): Import => ({
    // A query such as `?worker&url` is for the bundler.
    specifier: text.slice(start, end).replace(/^['"`]|['"`]$|\?.*$/g, ''),
    line: text.slice(0, start).split('\n').length,
    name,
  })
  return [
    ...staticImports.flatMap(({ moduleRequest, entries }) =>
      entries.length === 0
        ? [found(moduleRequest, undefined)]
        : entries.map(({ importName }) => found(moduleRequest, importName.name ?? undefined)),
    ),
    ...staticExports
      .flatMap(({ entries }) => entries)
      .flatMap(({ moduleRequest, importName, exportName }) => {
        if (moduleRequest === null) return []
        const { name } = importName
        return { ...found(moduleRequest, name ?? undefined), exportedAs: exportName.name ?? '*' }
      }),
    ...dynamicImports.flatMap(({ moduleRequest }) =>
      takenOf(text.slice(0, moduleRequest.start)).map((name) => found(moduleRequest, name)),
    ),
  ]
}

/**
 * Returns the names that the code before a dynamic import takes from it: `const { a } = await
 * import(`.
 */
function takenOf(before: string): readonly (string | undefined)[] {
  const names = /\{([\w\s,:]+)\}\s*=\s*await import\($/.exec(before)?.[1]
  if (names === undefined) return [undefined]
  return names.split(',').flatMap((name) => name.split(':')[0]?.trim() || [])
}
