/** Reads the fields of interfaces and inline object types. */
import type { TSInterfaceHeritage, TSSignature, TSType, TSTypeLiteral } from 'oxc-parser'
import {
  commentBefore,
  type Declaration,
  declarationOf,
  type SourceFile,
  type Sources,
} from './sources.ts'

export interface Field {
  readonly name: string
  readonly isOptional: boolean
  readonly type: TSType
  readonly comment: readonly string[]
  readonly file: SourceFile
  readonly start: number
}

export interface Fields {
  readonly fields: readonly Field[]
  /** Other declarations whose fields belong to this one, and that have a separate table. */
  readonly bases: readonly Declaration[]
}

/** Returns the fields of an interface. Fields of a base without a table are added to its own fields. */
export function fieldsOf(
  sources: Sources,
  { node, file }: Declaration,
  hasTable: (declaration: Declaration) => boolean,
): Fields {
  if (node.type !== 'TSInterfaceDeclaration') return { fields: [], bases: [] }
  const fields: Field[] = []
  const bases: Declaration[] = []
  for (const heritage of node.extends) {
    const { base, isKept } = baseOf(sources, file, heritage)
    if (base === undefined) continue
    if (isKept === undefined && hasTable(base)) bases.push(base)
    else fields.push(...allFields(sources, base).filter(({ name }) => isKept?.(name) ?? true))
  }
  return { fields: [...fields, ...membersOf(file, node.body.body)], bases }
}

const allFields = (sources: Sources, declaration: Declaration) =>
  fieldsOf(sources, declaration, () => false).fields

interface Base {
  readonly base: Declaration | undefined
  /** Whether `Pick` or `Omit` keeps the field. */
  readonly isKept?: (name: string) => boolean
}

function baseOf(
  sources: Sources,
  file: SourceFile,
  { expression, typeArguments }: TSInterfaceHeritage,
): Base {
  if (expression.type !== 'Identifier') return { base: undefined }
  const [target, keys] = typeArguments?.params ?? []
  const isKept = target && keys && filterOf(expression.name, keys)
  if (isKept === undefined) return { base: declarationOf(sources, file, expression.name) }
  const name = referenceName(target)
  return { base: name === undefined ? undefined : declarationOf(sources, file, name), isKept }
}

/** Returns the filter of `Pick<T, keys>` or `Omit<T, keys>`. */
function filterOf(utility: string, keys: TSType): ((name: string) => boolean) | undefined {
  const names = literalsOf(keys)
  if (utility === 'Pick') return (name) => names.includes(name)
  if (utility === 'Omit') return (name) => !names.includes(name)
  return undefined
}

/** Returns the texts of a union of text literals; empty for any other type. */
export function literalsOf(type: TSType): readonly string[] {
  if (type.type === 'TSUnionType') return type.types.flatMap(literalsOf)
  if (type.type !== 'TSLiteralType' || type.literal.type !== 'Literal') return []
  return typeof type.literal.value === 'string' ? [type.literal.value] : []
}

export function referenceName(type: TSType | undefined): string | undefined {
  if (type?.type !== 'TSTypeReference' || type.typeName.type !== 'Identifier') return undefined
  return type.typeName.name
}

export function membersOf(file: SourceFile, members: readonly TSSignature[]): readonly Field[] {
  return members.flatMap((member) => {
    if (member.type !== 'TSPropertySignature' || member.typeAnnotation === null) return []
    const { key, optional, start, typeAnnotation } = member
    const name = key.type === 'Identifier' ? key.name : key.type === 'Literal' ? key.value : null
    if (typeof name !== 'string') return []
    const comment = commentBefore(file, start)
    return [
      { name, isOptional: optional, type: typeAnnotation.typeAnnotation, comment, file, start },
    ]
  })
}

/** Returns the inline object types of a type: itself, or members of a union. */
export function objectsIn(type: TSType): readonly TSTypeLiteral[] {
  if (type.type === 'TSTypeLiteral') return [type]
  return type.type === 'TSUnionType' ? type.types.flatMap(objectsIn) : []
}

/** Returns the type as text on one line. Inline objects are shortened, because their fields have separate rows. */
export function typeText(file: SourceFile, type: TSType): string {
  switch (type.type) {
    case 'TSUnionType':
      return type.types.map((one) => typeText(file, one)).join(' | ')
    case 'TSTypeOperator':
      return type.operator === 'readonly'
        ? typeText(file, type.typeAnnotation)
        : plainText(file, type)
    case 'TSTypeLiteral':
      return shortObject(file, type)
    default:
      return plainText(file, type)
  }
}

/** Keeps the literal that distinguishes the object from others: `{ kind: 'ratio', … }`. */
function shortObject(file: SourceFile, { members }: TSTypeLiteral): string {
  const tags = membersOf(file, members).filter(isTag)
  const shown = tags.map(({ name, type }) => `${name}: ${plainText(file, type)}`)
  const rest = members.length > tags.length ? ['…'] : []
  return `{ ${[...shown, ...rest].join(', ')} }`
}

/** Returns whether the field only distinguishes its object from others. */
export const isTag = ({ type, isOptional }: Field): boolean =>
  type.type === 'TSLiteralType' && !isOptional

const plainText = ({ text }: SourceFile, { start, end }: TSType) =>
  text
    .slice(start, end)
    .replaceAll(/\/\*[^]*?\*\//g, '')
    .replaceAll(/\breadonly\s+/g, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
