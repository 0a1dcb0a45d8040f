/** Finds the exported functions, classes and methods that take a type as a parameter. */
import type { ParamPattern } from 'oxc-parser'
import {
  type Declaration,
  exportsOf,
  type Package,
  type SourceFile,
  type Sources,
} from './sources.ts'

export interface User {
  /** `consume()`, `new MemoryBroker()` or `Consumer.stop()`. */
  readonly label: string
  /** Comment of the declaration. */
  readonly comment: readonly string[]
}

export function usersOf(sources: Sources, owner: Package, type: string): readonly User[] {
  return exportsOf(sources, owner).flatMap((declaration) =>
    usesIn(declaration, type).map((label) => ({ label, comment: declaration.comment })),
  )
}

function usesIn({ name, file, node }: Declaration, type: string): readonly string[] {
  switch (node.type) {
    case 'FunctionDeclaration':
    case 'TSDeclareFunction':
      return overloadsOf(file, name).some((params) => takes(file, params, type))
        ? [`${name}()`]
        : []
    case 'VariableDeclarator': {
      const { init } = node
      const isUse = init?.type === 'ArrowFunctionExpression' && takes(file, init.params, type)
      return isUse ? [`${name}()`] : []
    }
    case 'ClassDeclaration':
      return node.body.body.flatMap((member) => {
        if (member.type !== 'MethodDefinition' || !takes(file, member.value.params, type)) return []
        if (member.kind === 'constructor') return [`new ${name}()`]
        return member.key.type === 'Identifier' ? [`${name}.${member.key.name}()`] : []
      })
    case 'TSInterfaceDeclaration':
      return node.body.body.flatMap((member) => {
        if (member.type !== 'TSMethodSignature' || !takes(file, member.params, type)) return []
        return member.key.type === 'Identifier' ? [`${name}.${member.key.name}()`] : []
      })
    default:
      return []
  }
}

/** Returns the parameters of a function, once for each of its overloads. */
function overloadsOf({ program }: SourceFile, name: string): readonly (readonly ParamPattern[])[] {
  return program.body.flatMap((statement) => {
    const node = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
    const isFunction = node?.type === 'FunctionDeclaration' || node?.type === 'TSDeclareFunction'
    return isFunction && node.id?.name === name ? [node.params] : []
  })
}

const takes = (file: SourceFile, params: readonly ParamPattern[], type: string): boolean =>
  params.some(({ start, end }) => new RegExp(`\\b${type}\\b`).test(file.text.slice(start, end)))
