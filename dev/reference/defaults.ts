/** Compares the default in the description of an option with the code that applies it. */
import { type Expression, Visitor } from 'oxc-parser'
import { parseDuration } from '../../packages/core/src/index.ts'
import type { SourceFile } from './sources.ts'

type Value = string | number | boolean

/** Returns a problem when the file applies another default to an option than its description states. */
export function defaultProblem(
  file: SourceFile,
  option: string,
  stated: string | undefined,
): string | undefined {
  const expected = stated === undefined ? undefined : literalValue(stated)
  const applied = appliedDefaults(file).get(option)
  if (expected === undefined || applied === undefined) return undefined
  if (applied.some((value) => isSameValue(value, expected))) return undefined
  return `states the default ${stated}, and the code uses ${applied.map(String).join(' and ')}`
}

/** Returns the value of a default that is written as a literal, such as `'30s'` or `1,000`. */
export function literalValue(text: string): Value | undefined {
  const plain = text.replaceAll('`', '')
  if (plain === 'true' || plain === 'false') return plain === 'true'
  const quoted = /^'([^']*)'$/.exec(plain)?.[1]
  if (quoted !== undefined) return quoted
  return /^(0o)?\d[\d,.]*$/.test(plain) ? Number(plain.replaceAll(',', '')) : undefined
}

/** Returns whether both values are the same. Durations are the same in every unit. */
export function isSameValue(one: Value, other: Value): boolean {
  if (one === other) return true
  const ms = parseDuration(one)
  return ms !== undefined && ms === parseDuration(other)
}

const known = new WeakMap<SourceFile, ReadonlyMap<string, readonly Value[]>>()

/**
 * Returns the defaults that a file applies, by name: `const { lease = LEASE_MS } = options` and
 * `options.keep ?? RETENTION_MS`.
 */
function appliedDefaults(file: SourceFile): ReadonlyMap<string, readonly Value[]> {
  const before = known.get(file)
  if (before !== undefined) return before
  const constants = constantsIn(file)
  const found = new Map<string, Value[]>()
  const add = (name: string, right: Expression): void => {
    const value = evaluate(right, constants)
    if (value !== undefined) found.set(name, [...(found.get(name) ?? []), value])
  }
  new Visitor({
    Property({ key, value }) {
      if (key.type === 'Identifier' && value.type === 'AssignmentPattern')
        add(key.name, value.right)
    },
    LogicalExpression({ operator, left, right }) {
      if (operator !== '??' || left.type !== 'MemberExpression') return
      if (left.property.type === 'Identifier') add(left.property.name, right)
    },
  }).visit(file.program)
  known.set(file, found)
  return found
}

function constantsIn({ program }: SourceFile): ReadonlyMap<string, Expression> {
  const found = new Map<string, Expression>()
  new Visitor({
    VariableDeclarator({ id, init }) {
      if (id.type === 'Identifier' && init !== null) found.set(id.name, init)
    },
  }).visit(program)
  return found
}

function evaluate(node: Expression, constants: ReadonlyMap<string, Expression>): Value | undefined {
  if (node.type === 'Literal') {
    const { value } = node
    return typeof value === 'object' || typeof value === 'bigint' ? undefined : value
  }
  if (node.type !== 'Identifier') return undefined
  const constant = constants.get(node.name)
  return constant?.type === 'Literal' ? evaluate(constant, constants) : undefined
}
