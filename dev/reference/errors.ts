/** The page of all errors that users can see: classes, codes, problems of the HTTP API and exit codes. */
import { Visitor } from 'oxc-parser'
import { code, list, type Page, pageText, table } from './markdown.ts'
import {
  type Declaration,
  declarationOf,
  exportsOf,
  lineOf,
  type Package,
  type Sources,
} from './sources.ts'
import { objectEntries, type UnionValue, unionValues } from './values.ts'

/** The declarations that the page describes. */
export interface ErrorTables {
  /** Union of the codes of errors, each with two paragraphs: meaning and action. */
  readonly codes: Declaration
  /** Object of the problems of the HTTP API with their status; comments as above. */
  readonly problems: Declaration
  /** Object of the exit codes of the command line. */
  readonly exits: Declaration
  /** Object that maps a problem to its exit code. */
  readonly exitOfProblem: Declaration
}

/** Packages for tests; users see none of their errors in production. */
const FOR_TESTS = /^packages\/testing$/

export function errorsPage(sources: Sources, tables: ErrorTables): Page {
  const packages = sources.packages.filter(({ folder }) => !FOR_TESTS.test(folder))
  const problems: string[] = []
  const blocks = [
    'Match errors by their code, never by their message: messages may change.',
    '## Error classes',
    classTable(sources, packages, problems),
    '## Codes of errors',
    ...codeBlocks(sources, packages, tables.codes, problems),
    '## Problems of the HTTP API',
    'The server sends them as `application/problem+json` (RFC 9457). `detail` has the cause and the remedy.',
    ...problemBlocks(tables, problems),
    '## Exit codes of the command line',
    exitTable(tables.exits, problems),
  ]
  const from = Object.values(tables as unknown as Record<string, Declaration>)
  const paths = [...new Set(from.map(({ file }) => file.path))]
  return { text: pageText('Errors', paths, blocks), problems }
}

function classTable(sources: Sources, packages: readonly Package[], problems: string[]): string {
  const rows = packages.flatMap((owner) =>
    exportsOf(sources, owner)
      .filter((declaration) => isError(sources, declaration))
      .map(({ name, file, node, comment }) => {
        if (comment.length === 0) {
          problems.push(
            `${file.path}:${lineOf(file, node.start)}: the class ${name} has no description`,
          )
        }
        return [code(name), code(owner.name), comment.join(' ')]
      }),
  )
  return table(['class', 'package', 'meaning'], rows)
}

function isError(sources: Sources, { node, file }: Declaration): boolean {
  if (node.type !== 'ClassDeclaration' || node.superClass?.type !== 'Identifier') return false
  const { name } = node.superClass
  if (name === 'Error') return true
  const base = declarationOf(sources, file, name)
  return base !== undefined && isError(sources, base)
}

function codeBlocks(
  sources: Sources,
  packages: readonly Package[],
  codes: Declaration,
  problems: string[],
): readonly string[] {
  const values = unionValues(codes)
  if (values.length === 0) problems.push(`${codes.file.path}: ${codes.name} has no codes`)
  const thrown = throwersOf(sources, packages, new Set(values.map(({ value }) => value)))
  return values.flatMap((one) => {
    const where = `${codes.file.path}:${lineOf(codes.file, one.start)}: the code ${one.value}`
    const by = thrown.get(one.value) ?? []
    if (by.length === 0) problems.push(`${where} is never thrown; remove it`)
    return [
      `### ${code(one.value)}`,
      ...twoParagraphs(one, where, problems),
      `Thrown by ${list(by.map(code))}.`,
    ]
  })
}

/** Returns the meaning and the action of a comment with two paragraphs. */
function twoParagraphs(
  { comment }: Pick<UnionValue, 'comment'>,
  where: string,
  problems: string[],
): readonly string[] {
  const [meaning, action] = comment
  if (meaning === undefined) problems.push(`${where} has no description`)
  if (action === undefined) {
    problems.push(`${where} does not state what to do; add a second paragraph to its comment`)
  }
  return [meaning ?? '', `**What to do:** ${action ?? ''}`]
}

/** Returns the packages that create an error with each code. */
function throwersOf(
  sources: Sources,
  packages: readonly Package[],
  codes: ReadonlySet<string>,
): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>()
  for (const { name, folder } of packages) {
    for (const thrown of sources.filesOf(folder).flatMap((file) => thrownIn(file.program, codes))) {
      found.set(thrown, [...new Set([...(found.get(thrown) ?? []), name])])
    }
  }
  return found
}

function thrownIn(
  program: Parameters<Visitor['visit']>[0],
  codes: ReadonlySet<string>,
): readonly string[] {
  const found: string[] = []
  new Visitor({
    NewExpression({ arguments: [first] }) {
      const value = first?.type === 'Literal' ? first.value : undefined
      if (typeof value === 'string' && codes.has(value)) found.push(value)
    },
    CallExpression({ callee }) {
      // All packages read their options with this function of core, which throws for them.
      const isReader = callee.type === 'Identifier' && callee.name === 'readOptions'
      if (isReader && codes.has('POLICY_INVALID')) found.push('POLICY_INVALID')
    },
  }).visit(program)
  return found
}

function problemBlocks(
  { problems: table, exits, exitOfProblem }: ErrorTables,
  problems: string[],
): readonly string[] {
  const { file } = table
  const exitCodes = new Map(numbersOf(exits))
  const exitNames = new Map(
    objectEntries(exitOfProblem).flatMap(({ name, value }) =>
      value.type === 'MemberExpression' && value.property.type === 'Identifier'
        ? [[name, value.property.name] as const]
        : [],
    ),
  )
  const statuses = new Map(numbersOf(table))
  return objectEntries(table).flatMap((entry) => {
    const where = `${file.path}:${lineOf(file, entry.start)}: the problem ${entry.name}`
    const exit = exitCodes.get(exitNames.get(entry.name) ?? '')
    if (exit === undefined) problems.push(`${where} has no exit code in ${exitOfProblem.file.path}`)
    return [
      `### ${code(entry.name)}`,
      ...twoParagraphs(entry, where, problems),
      `HTTP status ${statuses.get(entry.name)}, exit code ${exit}.`,
    ]
  })
}

const numbersOf = (declaration: Declaration): readonly (readonly [string, number])[] =>
  objectEntries(declaration).flatMap(({ name, value }) =>
    value.type === 'Literal' && typeof value.value === 'number' ? [[name, value.value]] : [],
  )

function exitTable(exits: Declaration, problems: string[]): string {
  const { file } = exits
  const codes = new Map(numbersOf(exits))
  const rows = objectEntries(exits).map(({ name, comment, start }) => {
    if (comment.length === 0) {
      problems.push(`${file.path}:${lineOf(file, start)}: the exit code ${name} has no description`)
    }
    return [code(String(codes.get(name))), comment.join(' ')]
  })
  return table(['exit code', 'meaning'], rows)
}
