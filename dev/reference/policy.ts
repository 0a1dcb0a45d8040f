/** Compares the descriptions of policy options with the resolver: its defaults and its ranges. */
import { isRedriveError, resolvePolicy } from '../../packages/core/src/index.ts'
import { isSameValue, literalValue } from './defaults.ts'
import { describe } from './descriptions.ts'
import { type Field, fieldsOf, isTag, membersOf, objectsIn, referenceName } from './fields.ts'
import { type Declaration, declarationOf, lineOf, type Sources } from './sources.ts'

/** One option of the policy with its position: `breaker.trip.failures`. */
interface Leaf {
  readonly path: readonly string[]
  readonly field: Field
  /** Fields that select the variant of an object: `{ kind: 'ratio' }`. */
  readonly tags: Readonly<Record<string, string>>
}

export function policyProblems(sources: Sources, policy: Declaration): readonly string[] {
  return leavesOf(sources, policy).flatMap((leaf) => {
    const { file, start, comment } = leaf.field
    const where = `${file.path}:${lineOf(file, start)}: the option ${leaf.path.join('.')}`
    const { meaning, default: stated } = describe(comment.join(' '))
    const problems = [rangeProblem(leaf, meaning), wrongDefault(leaf, stated)]
    return problems.flatMap((problem) => (problem === undefined ? [] : [`${where} ${problem}`]))
  })
}

function leavesOf(
  sources: Sources,
  declaration: Declaration,
  path: readonly string[] = [],
): readonly Leaf[] {
  const { fields } = fieldsOf(sources, declaration, () => false)
  return fields.flatMap((field) => leavesOfField(sources, field, [...path, field.name]))
}

function leavesOfField(sources: Sources, field: Field, path: readonly string[]): readonly Leaf[] {
  const objects = objectsIn(field.type)
  const inline = objects.flatMap(({ members }) => {
    const parts = membersOf(field.file, members)
    const tags = Object.fromEntries(
      parts
        .filter(isTag)
        .map(({ name, type, file }) => [name, file.text.slice(type.start + 1, type.end - 1)]),
    )
    return parts
      .filter((part) => !isTag(part))
      .map((part): Leaf => ({ path: [...path, part.name], field: part, tags }))
  })
  if (inline.length > 0) return inline
  const types = field.type.type === 'TSUnionType' ? field.type.types : [field.type]
  const sections = types.flatMap((type) => {
    const name = referenceName(type)
    const found = name === undefined ? undefined : declarationOf(sources, field.file, name)
    return found?.node.type === 'TSInterfaceDeclaration' ? [found] : []
  })
  if (sections.length === 0) return [{ path, field, tags: {} }]
  return sections.flatMap((section) => leavesOf(sources, section, path))
}

/** An object is invalid for every option that has a range. */
const INVALID = {}

/** Returns a problem when the resolver has a range that the description does not state. */
function rangeProblem({ path, tags }: Leaf, meaning: string): string | undefined {
  const options = path.reduceRight<unknown>(
    (inner, name, index) =>
      index === path.length - 1 ? { ...tags, [name]: inner } : { [name]: inner },
    INVALID,
  )
  const sentence = problemOf(options, path.join('.'))
  const [, kind, min, max] = /expected a (.*)from (\S+) to (\S+?),? /.exec(sentence) ?? []
  if (kind === undefined || min === undefined || max === undefined) return undefined
  const range = kind.startsWith('duration')
    ? `'${min}'–'${max}'`
    : `${Number(min).toLocaleString('en')}–${Number(max).toLocaleString('en')}`
  return meaning.includes(`(${range})`) ? undefined : `does not state its range (${range})`
}

function problemOf(options: unknown, path: string): string {
  try {
    resolvePolicy(options as Parameters<typeof resolvePolicy>[0])
  } catch (error) {
    if (!isRedriveError(error)) throw error
    return error.problems.find((problem) => problem.startsWith(`${path}: `)) ?? ''
  }
  return ''
}

/** Returns a problem when the resolver uses another default. A default of sinks comes after "sinks". */
function wrongDefault({ path, tags }: Leaf, stated: string | undefined): string | undefined {
  const [forConsumers, forSinks = forConsumers] = stated?.split(/, (?:for )?sinks /) ?? []
  for (const [role, text] of [
    ['consumer', forConsumers],
    ['sink', forSinks],
  ] as const) {
    const expected = text === undefined ? undefined : literalValue(text)
    const used = resolvedValue(path, tags, role)
    if (expected === undefined || used === undefined || isSameValue(used, expected)) continue
    return `states the default ${text} for a ${role}, and the code uses ${used}`
  }
  return undefined
}

/** Returns the resolved default of an option. A duration has the suffix `Ms` in the resolved policy. */
function resolvedValue(
  path: readonly string[],
  tags: Readonly<Record<string, string>>,
  role: 'consumer' | 'sink',
): string | number | boolean | undefined {
  const parents = path.slice(0, -1)
  const options = parents.reduceRight<unknown>((inner, name) => ({ [name]: inner }), tags)
  let value: unknown = resolvePolicy(options as Parameters<typeof resolvePolicy>[0], role)
  for (const name of path) value = fieldOf(value, name) ?? fieldOf(value, `${name}Ms`)
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? value
    : undefined
}

const fieldOf = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined
