import nodeModule from 'node:module'
import { type AnyNode, parse, type Program } from 'acorn'

export type Syntax = AnyNode

/** A node with the nodes around it, from the innermost to the program. */
export interface FoundNode<N extends Syntax = Syntax> {
  readonly node: N
  readonly around: readonly Syntax[]
}

/** Parses JavaScript or TypeScript. Positions are those of the text. Undefined when it cannot be parsed. */
export function parseSource(text: string, isTypeScript: boolean): Program | undefined {
  const options = { ecmaVersion: 'latest', allowHashBang: true } as const
  try {
    // Types become spaces, so all positions stay.
    const script = isTypeScript ? withoutTypes(text) : text
    try {
      return parse(script, { ...options, sourceType: 'module' })
    } catch {
      return parse(script, { ...options, sourceType: 'script' })
    }
  } catch {
    return undefined
  }
}

/** Replaces types by spaces. Throws with Node 22.12, which cannot do it, and for syntax that is more than types. */
function withoutTypes(text: string): string {
  const { stripTypeScriptTypes } = nodeModule as Partial<typeof nodeModule>
  if (stripTypeScriptTypes === undefined) throw new Error('Node cannot read TypeScript.')
  // Node warns at the first call that the function is experimental. Users cannot do anything about it.
  const emitWarning = process.emitWarning.bind(process)
  process.emitWarning = () => undefined
  try {
    return stripTypeScriptTypes(text, { mode: 'strip' })
  } finally {
    process.emitWarning = emitWarning
  }
}

/** Returns all nodes below a node, in the order of the text. */
export function nodesIn(root: Syntax): readonly FoundNode[] {
  const found: FoundNode[] = []
  const visit = (node: Syntax, around: readonly Syntax[]): void => {
    found.push({ node, around })
    for (const child of childrenOf(node)) visit(child, [node, ...around])
  }
  visit(root, [])
  return found
}

function childrenOf(node: Syntax): readonly Syntax[] {
  const values = Object.values(node) as unknown[]
  return values
    .flatMap((value) => (Array.isArray(value) ? (value as readonly unknown[]) : [value]))
    .filter(isNode)
}

const isNode = (value: unknown): value is Syntax =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value

export const isFunction = ({ type }: Syntax): boolean =>
  type === 'FunctionExpression' ||
  type === 'ArrowFunctionExpression' ||
  type === 'FunctionDeclaration'

/** Returns the innermost function around a node; undefined at the top level. */
export const functionAround = ({ around }: FoundNode): Syntax | undefined => around.find(isFunction)

/** Returns the name of a called method, and the name of its object. */
export function methodOf(
  node: Syntax,
): { readonly object: string; readonly method: string } | undefined {
  if (node.type !== 'CallExpression') return undefined
  const { callee } = node
  if (callee.type !== 'MemberExpression' || callee.property.type !== 'Identifier') return undefined
  if (callee.object.type !== 'Identifier') return undefined
  return { object: callee.object.name, method: callee.property.name }
}

export const isName = (node: Syntax | null | undefined, name: string): boolean =>
  node?.type === 'Identifier' && node.name === name

/** Replaces a part of the text. */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Applies edits that do not overlap. A line that becomes empty is removed. New lines end as those of the text. */
export function applyEdits(text: string, edits: readonly Edit[]): string {
  let result = text
  const lineBreak = text.includes('\r\n') ? '\r\n' : '\n'
  for (const { start, end, text: edit } of edits.toSorted((a, b) => b.start - a.start)) {
    const fresh = edit.replaceAll(/\r?\n/g, lineBreak)
    const lineStart = result.lastIndexOf('\n', start - 1) + 1
    const lineEnd = result.indexOf('\n', end)
    const rest = lineEnd < 0 ? result.slice(end) : result.slice(end, lineEnd)
    const isAlone =
      fresh === '' && /^\s*$/.test(result.slice(lineStart, start)) && /^;?\s*$/.test(rest)
    result = isAlone
      ? result.slice(0, lineStart) + (lineEnd < 0 ? '' : result.slice(lineEnd + 1))
      : result.slice(0, start) + fresh + result.slice(end)
  }
  return result
}

export const lineOf = (text: string, position: number): number =>
  text.slice(0, position).split('\n').length

/** Returns the white space before a statement. */
export const indentOf = (text: string, position: number): string =>
  /[ \t]*$/.exec(text.slice(0, position))?.[0] ?? ''

/** Adds imports after the last one, in the style of the file. */
export function importEdit(
  program: Program,
  imports: readonly (readonly [name: string, from: string])[],
  text: string,
): Edit {
  const last = program.body.findLast(({ type }) => type === 'ImportDeclaration')
  const quote = /from "/.test(text) || /require\("/.test(text) ? '"' : "'"
  const end = /;\r?\n/.test(text) ? ';' : ''
  const isRequired = last === undefined && /\brequire\(/.test(text)
  const lines = imports.map(([name, from]) =>
    isRequired
      ? `const { ${name} } = require(${quote}${from}${quote})${end}`
      : `import { ${name} } from ${quote}${from}${quote}${end}`,
  )
  if (last !== undefined) return { start: last.end, end: last.end, text: `\n${lines.join('\n')}` }
  const at = program.body.find(({ type }) => type === 'VariableDeclaration')?.end ?? 0
  return { start: at, end: at, text: at === 0 ? `${lines.join('\n')}\n` : `\n${lines.join('\n')}` }
}
