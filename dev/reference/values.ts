/** Reads unions of text literals and object literals, with the comment of each member. */
import type { Expression, ObjectProperty, TSType } from 'oxc-parser'
import { literalsOf } from './fields.ts'
import { commentBefore, type Declaration } from './sources.ts'

export interface UnionValue {
  readonly value: string
  readonly comment: readonly string[]
  readonly start: number
}

/** Returns the members of a union of text literals; empty for any other type. */
export function unionValues({ node, file }: Declaration): readonly UnionValue[] {
  if (node.type !== 'TSTypeAliasDeclaration' || node.typeAnnotation.type !== 'TSUnionType')
    return []
  const { types } = node.typeAnnotation
  const read = (type: TSType) =>
    literalsOf(type).map((value) => ({
      value,
      comment: commentBefore(file, type.start),
      start: type.start,
    }))
  const values = types.flatMap(read)
  return values.length === types.length ? values : []
}

export interface ObjectEntry {
  readonly name: string
  readonly value: Expression
  readonly comment: readonly string[]
  readonly start: number
}

/** Returns the properties of a constant that is an object literal. */
export function objectEntries({ node, file }: Declaration): readonly ObjectEntry[] {
  const init = node.type === 'VariableDeclarator' ? node.init : null
  const object = init?.type === 'TSAsExpression' ? init.expression : init
  if (object?.type !== 'ObjectExpression') return []
  return object.properties.flatMap((property) =>
    property.type === 'Property' ? entryOf(property) : [],
  )
  function entryOf({ key, value, start }: ObjectProperty): readonly ObjectEntry[] {
    if (key.type !== 'Identifier') return []
    return [{ name: key.name, value, comment: commentBefore(file, start), start }]
  }
}
