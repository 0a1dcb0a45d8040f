/** Reads declarations and their doc comments from the sources of the workspace. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import {
  type Class,
  type Comment,
  type Function,
  type ImportDeclaration,
  parseSync,
  type Program,
  type Statement,
  type TSInterfaceDeclaration,
  type TSTypeAliasDeclaration,
  type VariableDeclarator,
} from 'oxc-parser'

export interface SourceFile {
  /** Relative to the root of the workspace. */
  readonly path: string
  readonly text: string
  readonly program: Program
  readonly comments: readonly Comment[]
}

export interface Package {
  readonly name: string
  /** Relative to the root of the workspace. */
  readonly folder: string
  /** The source file of each name that other packages import: `@redrive/kafka`, `@redrive/kafka/kafkajs`. */
  readonly entries: Readonly<Record<string, string>>
}

export interface Sources {
  readonly packages: readonly Package[]
  /** Returns the parsed file. Each file is parsed once. */
  file(path: string): SourceFile
  /** Returns the source files of a package. */
  filesOf(folder: string): readonly SourceFile[]
}

export type DeclarationNode =
  | TSInterfaceDeclaration
  | TSTypeAliasDeclaration
  | Class
  | Function
  | VariableDeclarator

export interface Declaration {
  readonly name: string
  readonly file: SourceFile
  readonly node: DeclarationNode
  /** Paragraphs of the doc comment, each on one line. */
  readonly comment: readonly string[]
}

export function readSources(root: string): Sources {
  const parsed = new Map<string, SourceFile>()
  const file = (path: string): SourceFile => {
    const known = parsed.get(path)
    if (known !== undefined) return known
    const text = readFileSync(join(root, path), 'utf8')
    const { program, comments } = parseSync(path, text)
    const made = { path, text, program, comments }
    parsed.set(path, made)
    return made
  }
  return {
    packages: readPackages(root),
    file,
    filesOf: (folder) => globSync(`${folder}/src/**/*.ts`, { cwd: root }).sort().map(file),
  }
}

function readPackages(root: string): readonly Package[] {
  return globSync('packages/{*,*/*}/package.json', { cwd: root })
    .filter((path) => !path.includes('node_modules'))
    .sort()
    .map((path) => {
      const { name, exports = {} } = JSON.parse(readFileSync(join(root, path), 'utf8')) as Manifest
      const folder = dirname(path)
      const entries = Object.entries(exports).flatMap(([key, { [SOURCE]: file }]) =>
        file === undefined ? [] : [[join(name, key), join(folder, file)] as const],
      )
      return { name, folder, entries: Object.fromEntries(entries) }
    })
}

const SOURCE = '@redrive/source'

interface Manifest {
  readonly name: string
  readonly exports?: Readonly<Record<string, { readonly [SOURCE]?: string }>>
}

/** Returns the packages whose folders match, in the order of the patterns. */
export function packagesIn({ packages }: Sources, folders: readonly RegExp[]): readonly Package[] {
  return folders.flatMap((folder) => packages.filter((one) => folder.test(one.folder)))
}

/** Returns the declarations that a package exports for users. Names from outside the workspace are left out. */
export function exportsOf(sources: Sources, { entries }: Package): readonly Declaration[] {
  const forUsers = Object.entries(entries).filter(([name]) => !name.endsWith('/internal'))
  return forUsers.flatMap(([, path]) => {
    const entry = sources.file(path)
    return exportedNames(entry).flatMap((name) => declarationOf(sources, entry, name) ?? [])
  })
}

function exportedNames({ program }: SourceFile): readonly string[] {
  return program.body.flatMap((statement) => {
    if (statement.type !== 'ExportNamedDeclaration') return []
    const own = declarationsIn(statement).map(({ name }) => name)
    const others = statement.specifiers.map(({ exported }) => nameOf(exported))
    // Overloads of a function are several declarations.
    return [...new Set([...own, ...others])]
  })
}

/** Returns the declaration that `name` refers to in a file, also when it is imported or exported again. */
export function declarationOf(
  sources: Sources,
  file: SourceFile,
  name: string,
): Declaration | undefined {
  for (const statement of file.program.body) {
    const own = declarationsIn(statement).find((one) => one.name === name)
    if (own !== undefined) {
      return { ...own, file, comment: commentBefore(file, statement.start) }
    }
    const origin = originOf(statement, name)
    if (origin === undefined) continue
    const target = targetOf(sources, file, origin.module)
    // A name that is imported and exported in two statements has no module in the second one.
    if (target !== undefined) return declarationOf(sources, target, origin.name)
  }
  return undefined
}

function declarationsIn(
  statement: Statement,
): readonly { readonly name: string; readonly node: DeclarationNode }[] {
  const node =
    statement.type === 'ExportNamedDeclaration' ? (statement.declaration ?? statement) : statement
  switch (node.type) {
    case 'TSInterfaceDeclaration':
    case 'TSTypeAliasDeclaration':
      return [{ name: node.id.name, node }]
    case 'ClassDeclaration':
    case 'FunctionDeclaration':
    case 'TSDeclareFunction':
      return node.id === null ? [] : [{ name: node.id.name, node }]
    case 'VariableDeclaration':
      return node.declarations.flatMap((one) =>
        one.id.type === 'Identifier' ? [{ name: one.id.name, node: one }] : [],
      )
    default:
      return []
  }
}

interface Origin {
  readonly module: string
  readonly name: string
}

function originOf(statement: Statement, name: string): Origin | undefined {
  if (statement.type === 'ImportDeclaration') return importedOrigin(statement, name)
  if (statement.type !== 'ExportNamedDeclaration' || statement.source === null) return undefined
  const found = statement.specifiers.find(({ exported }) => nameOf(exported) === name)
  return found && { module: statement.source.value, name: nameOf(found.local) }
}

function importedOrigin(
  { specifiers, source }: ImportDeclaration,
  name: string,
): Origin | undefined {
  const found = specifiers.find(({ local }) => local.name === name)
  if (found?.type !== 'ImportSpecifier') return undefined
  return { module: source.value, name: nameOf(found.imported) }
}

type ModuleName =
  | { readonly type: 'Identifier'; readonly name: string }
  | { readonly type: 'Literal'; readonly value: string }

const nameOf = (name: ModuleName): string => (name.type === 'Literal' ? name.value : name.name)

function targetOf(sources: Sources, from: SourceFile, module: string): SourceFile | undefined {
  if (module.startsWith('.')) return sources.file(join(dirname(from.path), module))
  const path = sources.packages.flatMap(({ entries }) => entries[module] ?? [])[0]
  return path === undefined ? undefined : sources.file(path)
}

/** Returns the paragraphs of the doc comment directly before a position. */
export function commentBefore({ text, comments }: SourceFile, start: number): readonly string[] {
  // The members of a union are separated by `|`, and their comments come before it.
  const end = text.slice(0, start).replace(/[\s|]+$/, '').length
  const found = comments.find((one) => one.type === 'Block' && one.end === end)
  if (found === undefined || !found.value.startsWith('*')) return []
  return found.value
    .slice(1)
    .replaceAll(/^[ \t]*\*[ \t]?/gm, '')
    .trim()
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.replaceAll(/\s+/g, ' ').trim())
    .filter((paragraph) => paragraph !== '')
}

export function lineOf({ text }: SourceFile, start: number): number {
  return text.slice(0, start).split('\n').length
}
