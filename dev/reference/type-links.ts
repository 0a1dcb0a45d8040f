/** Writes types as Markdown, with links to the types of options on the same page. */
import type { TSType } from 'oxc-parser'
import { literalsOf, referenceName, typeText } from './fields.ts'
import { code, list } from './markdown.ts'
import type { OptionType } from './option-types.ts'
import { type Declaration, declarationOf, type SourceFile, type Sources } from './sources.ts'

export interface TypeLinks {
  /** Returns the type of options that a declaration is. */
  find(declaration: Declaration): OptionType | undefined
  /** Returns whether the type contains a type of options. */
  hasLink(file: SourceFile, type: TSType): boolean
  /** Returns the type for a cell of a table. */
  cell(file: SourceFile, type: TSType): string
  /** Describes a type that is made of other types. */
  alias(file: SourceFile, type: TSType): string
}

export const linkTo = ({ declaration, anchor }: OptionType): string =>
  `[${code(declaration.name)}](#${anchor})`

export function createTypeLinks(sources: Sources, types: readonly OptionType[]): TypeLinks {
  const find = (one: Declaration) =>
    types.find(({ declaration: { file, name } }) => file === one.file && name === one.name)

  function linkOf(file: SourceFile, name: string): string | undefined {
    const found = declarationOf(sources, file, name)
    const type = found && find(found)
    return type && linkTo(type)
  }

  function cell(file: SourceFile, type: TSType): string {
    // Every second part is a name; the texts between links become code.
    const parts = typeText(file, type).split(/\b([A-Z]\w+)\b/)
    let text = ''
    let cells = ''
    for (const [index, part] of parts.entries()) {
      const link = index % 2 === 0 ? undefined : linkOf(file, part)
      if (link === undefined) text += part
      else {
        cells += `${codeAround(text)}${link}`
        text = ''
      }
    }
    return `${cells}${codeAround(text)}`
  }

  function alias(file: SourceFile, type: TSType): string {
    const [target, keys] = type.type === 'TSTypeReference' ? (type.typeArguments?.params ?? []) : []
    const names = keys === undefined ? [] : literalsOf(keys)
    if (target !== undefined && names.length > 0) {
      const write = PARTS[referenceName(type) ?? '']
      if (write !== undefined) return write(cell(file, target), list(names.map(code)))
    }
    if (type.type !== 'TSUnionType') return cell(file, type)
    return type.types.map((one) => `- ${variant(file, one)}`).join('\n')
  }

  /** Describes a member of a union such as `{ kind: 'fixed' } & FixedOptions`. */
  function variant(file: SourceFile, type: TSType): string {
    const inner = type.type === 'TSParenthesizedType' ? type.typeAnnotation : type
    if (inner.type !== 'TSIntersectionType') return cell(file, inner)
    return inner.types.map((one) => cell(file, one)).join(' with ')
  }

  return { find, hasLink: (file, type) => cell(file, type).includes(']('), cell, alias }
}

const PARTS: Readonly<Record<string, (target: string, names: string) => string>> = {
  Omit: (target, names) => `The options of ${target} except ${names}.`,
  Pick: (target, names) => `The options ${names} of ${target}.`,
}

/** Formats text as code. Spaces at its ends stay outside, where Markdown keeps them. */
const codeAround = (text: string) => text.replace(/^(\s*)(\S.*?)(\s*)$/, '$1`$2`$3')
