/** Finds the exported types of options, in the order of their page. */
import { referenceName } from './fields.ts'
import { anchorsOf } from './markdown.ts'
import { type Declaration, exportsOf, type Package, type Sources } from './sources.ts'

export interface OptionType {
  readonly package: Package
  readonly declaration: Declaration
  /** Anchor of its heading. */
  readonly anchor: string
}

export function optionTypesOf(
  sources: Sources,
  packages: readonly Package[],
): readonly OptionType[] {
  const found = packages.flatMap((owner) =>
    inOrder(exportsOf(sources, owner).filter(isOptions)).map((declaration) => ({
      package: owner,
      declaration,
    })),
  )
  // Headings of packages come between these, and none has the name of a type.
  const anchors = anchorsOf(found.map(({ declaration }) => declaration.name))
  return found.map((one, index) => ({ ...one, anchor: anchors[index] ?? '' }))
}

function isOptions({ name, node }: Declaration): boolean {
  if (node.type === 'TSInterfaceDeclaration') return name.endsWith('Options')
  if (node.type !== 'TSTypeAliasDeclaration') return false
  if (name.endsWith('Options')) return true
  const { typeAnnotation: type } = node
  if (type.type !== 'TSTypeReference') return false
  const isPart = ['Omit', 'Pick'].includes(referenceName(type) ?? '')
  return isPart && referenceName(type.typeArguments?.params[0])?.endsWith('Options') === true
}

/** Returns the types with the most parts first, and each type before the types of its fields. */
function inOrder(types: readonly Declaration[]): readonly Declaration[] {
  const byName = new Map(types.map((one) => [one.name, one]))
  const partsOf = (one: Declaration) => namesIn(one).flatMap((name) => byName.get(name) ?? [])
  const parts = new Set(types.flatMap(partsOf))
  const ordered = new Set<Declaration>()
  const visit = (one: Declaration): void => {
    if (ordered.has(one)) return
    ordered.add(one)
    for (const part of partsOf(one)) visit(part)
  }
  types
    .filter((one) => !parts.has(one))
    .toSorted((one, other) => partsOf(other).length - partsOf(one).length)
    .forEach(visit)
  types.forEach(visit)
  return [...ordered]
}

const COMMENT = /\/\*[^]*?\*\//g

/** Returns the names of the types of its fields, in order. */
function namesIn({ name, file, node }: Declaration): readonly string[] {
  const { start, end } = node.type === 'TSInterfaceDeclaration' ? node.body : node
  const text = file.text.slice(start, end).replaceAll(COMMENT, '')
  return [...new Set(text.match(/\b[A-Z]\w+/g) ?? [])].filter((word) => word !== name)
}
