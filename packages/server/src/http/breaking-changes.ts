import type { Json } from './openapi.ts'

/**
 * Returns the breaking changes between two OpenAPI documents. One rule applies: the reader must accept everything
 * that the writer can send. For a request, the old document is the writer; for a response, the new one.
 */
export function breaking(before: Json, after: Json): readonly string[] {
  const problems: string[] = []
  for (const [name, was] of operationsOf(before)) {
    const is = operationsOf(after).get(name)
    if (is === undefined) problems.push(`${name}: was removed`)
    else problems.push(...compareOperation(name, { in: before, of: was }, { in: after, of: is }))
  }
  return problems
}

/** Returns whether the version allows a breaking change: a new major number, or a new minor one before 1.0. */
export function isRaised(before: Json, after: Json): boolean {
  const [was, is] = [before, after].map((one) => versionOf(one).split('.').map(Number))
  const [major = 0, minor = 0] = was ?? []
  const [newMajor = 0, newMinor = 0] = is ?? []
  return newMajor > major || (major === 0 && newMajor === 0 && newMinor > minor)
}

const versionOf = ({ info }: Json) =>
  (info as { readonly version?: string } | undefined)?.version ?? '0.0.0'

/** A part (`of`) of a document (`in`). References are resolved in the document. */
interface Part {
  readonly in: Json
  readonly of: Json
}

function operationsOf({ paths }: Json): ReadonlyMap<string, Json> {
  const all = Object.entries((paths ?? {}) as Readonly<Record<string, Record<string, Json>>>)
  return new Map(
    all.flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, one]) => [`${method.toUpperCase()} ${path}`, one]),
    ),
  )
}

function compareOperation(name: string, was: Part, is: Part): readonly string[] {
  return [
    ...compareParameters(name, was, is),
    ...compareBodies(`${name} body`, schemaIn(is, 'requestBody'), schemaIn(was, 'requestBody')),
    ...compareResponses(name, was, is),
  ]
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly schema: Json
}

function compareParameters(name: string, was: Part, is: Part): readonly string[] {
  const all = ({ of }: Part) => (of['parameters'] ?? []) as readonly Parameter[]
  const same = (one: Parameter) => (other: Parameter) =>
    one.name === other.name && one.in === other.in
  const gone = all(was).filter((one) => !all(is).some(same(one)))
  const problems = gone.map((one) => `${name} ${one.name}: was removed`)
  for (const one of all(is)) {
    const old = all(was).find(same(one))
    const isNew = one.required && old?.required !== true
    if (isNew) problems.push(`${name} ${one.name}: is required now`)
    if (old === undefined) continue
    const reader = { in: is.in, of: one.schema }
    problems.push(...compareBodies(`${name} ${one.name}`, reader, { in: was.in, of: old.schema }))
  }
  return problems
}

function compareResponses(name: string, was: Part, is: Part): readonly string[] {
  const responses = ({ of }: Part) => of['responses'] as Readonly<Record<string, Json>>
  return Object.keys(responses(was)).flatMap((status) => {
    if (responses(is)[status] === undefined) return [`${name}: no longer returns ${status}`]
    const [reader, writer] = [was, is].map((part) =>
      contentOf({ in: part.in, of: responses(part)[status] ?? {} }),
    )
    return compareBodies(`${name} ${status}`, reader, writer)
  })
}

const schemaIn = (part: Part, name: string): Part | undefined =>
  part.of[name] === undefined ? undefined : contentOf({ in: part.in, of: part.of[name] as Json })

function contentOf(part: Part): Part | undefined {
  const content = (part.of['content'] ?? {}) as Readonly<Record<string, { schema: Json }>>
  const [type, one] = Object.entries(content)[0] ?? []
  if (one === undefined) return undefined
  // The content type is compared as well.
  return {
    in: part.in,
    of: { type: 'object', required: [type], properties: { [type ?? '']: one.schema } },
  }
}

/** Compares two bodies, each of which may be absent. */
function compareBodies(
  at: string,
  reader: Part | undefined,
  writer: Part | undefined,
): readonly string[] {
  if (reader === undefined && writer === undefined) return []
  if (reader === undefined) return [`${at}: is no longer accepted`]
  if (writer === undefined) return [`${at}: is now required, or no longer sent`]
  return compareSchemas(at, reader, writer)
}

/** Returns what the writer's schema allows and the reader's schema rejects. */
function compareSchemas(at: string, givenReader: Part, givenWriter: Part): readonly string[] {
  const [reader, writer] = [resolved(givenReader), resolved(givenWriter)]
  if (acceptsAnything(reader.of)) return []
  const branches = branchesOf(writer)
  if (branches !== undefined || branchesOf(reader) !== undefined) {
    return (branches ?? [writer]).flatMap((one) => {
      const tries = (branchesOf(reader) ?? [reader]).map((other) => compareSchemas(at, other, one))
      // The best matching branch has the most useful problems.
      return tries.toSorted((a, b) => a.length - b.length)[0] ?? []
    })
  }
  return [
    ...compareTypes(at, reader.of, writer.of),
    ...compareLimits(at, reader.of, writer.of),
    ...compareProperties(at, reader, writer),
    ...compareItems(at, reader, writer),
  ]
}

function resolved(part: Part): Part {
  const { $ref } = part.of
  if (typeof $ref !== 'string') return part
  const components = part.in['components'] as { readonly schemas: Readonly<Record<string, Json>> }
  return { in: part.in, of: components.schemas[$ref.split('/').at(-1) ?? ''] ?? {} }
}

const NOTES: ReadonlySet<string> = new Set(['description', 'title'])
const acceptsAnything = (schema: Json) => Object.keys(schema).every((name) => NOTES.has(name))

function branchesOf(part: Part): readonly Part[] | undefined {
  const branches = part.of['anyOf'] ?? part.of['oneOf']
  return (branches as readonly Json[] | undefined)?.map((of) => ({ in: part.in, of }))
}

function compareTypes(at: string, reader: Json, writer: Json): readonly string[] {
  const [expects, gives] = [typesOf(reader), typesOf(writer)]
  const isAccepted = gives.every((one) => expects.includes(one) || isNarrow(one, expects))
  if (expects.length > 0 && (gives.length === 0 || !isAccepted)) {
    return [`${at}: type is ${gives.join(' or ')}, expected ${expects.join(' or ')}`]
  }
  const [known, values] = [reader, writer].map(valuesOf)
  if (known === undefined) return []
  if (values === undefined) return [`${at}: allows values other than ${known.join(', ')}`]
  const unknown = values.filter((value) => !known.includes(value))
  return unknown.map((value) => `${at}: unknown value "${String(value)}"`)
}

/** Returns the types of a schema as a list. */
const typesOf = (schema: Json) => {
  const type = (schema['type'] ?? []) as string | readonly string[]
  return typeof type === 'string' ? [type] : type
}
const isNarrow = (type: string, expected: readonly string[]) =>
  type === 'integer' && expected.includes('number')

const valuesOf = (schema: Json): readonly unknown[] | undefined =>
  'const' in schema ? [schema['const']] : (schema['enum'] as readonly unknown[] | undefined)

/** Names of limits: lower limits, upper limits, and rules that must be equal. */
const LEAST = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties']
const MOST = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties']
const EXACT = ['pattern', 'format', 'contentEncoding']

function compareLimits(at: string, reader: Json, writer: Json): readonly string[] {
  const number = (schema: Json, name: string, otherwise: number) =>
    (schema[name] as number | undefined) ?? otherwise
  const isNarrower = (name: string) => {
    if (LEAST.includes(name))
      return number(reader, name, -Infinity) > number(writer, name, -Infinity)
    if (MOST.includes(name)) return number(reader, name, Infinity) < number(writer, name, Infinity)
    return reader[name] !== undefined && reader[name] !== writer[name]
  }
  const names = [...LEAST, ...MOST, ...EXACT].filter(isNarrower)
  return names.map((name) => `${at}: ${name} is narrower`)
}

function compareProperties(at: string, reader: Part, writer: Part): readonly string[] {
  const [known, given] = [reader, writer].map(
    ({ of }) => (of['properties'] ?? {}) as Readonly<Record<string, Json>>,
  )
  const [needed, sure] = [reader, writer].map(
    ({ of }) => (of['required'] ?? []) as readonly string[],
  )
  const missing = (needed ?? []).filter((name) => sure?.includes(name) !== true)
  const problems = missing.map((name) => `${at}.${name}: is required, but may be absent`)
  const rest = reader.of['additionalProperties']
  for (const [name, schema] of Object.entries(given ?? {})) {
    const expected = known?.[name] ?? rest
    if (expected === false) problems.push(`${at}.${name}: is not allowed`)
    if (typeof expected !== 'object' || expected === null) continue
    const parts = [
      { in: reader.in, of: expected as Json },
      { in: writer.in, of: schema },
    ] as const
    problems.push(...compareSchemas(`${at}.${name}`, ...parts))
  }
  return problems
}

function compareItems(at: string, reader: Part, writer: Part): readonly string[] {
  const parts = (['items', 'additionalProperties'] as const).flatMap((name) => {
    const [expected, given] = [reader.of[name], writer.of[name]]
    const areBoth = typeof expected === 'object' && typeof given === 'object'
    return areBoth ? [[name, expected as Json, given as Json] as const] : []
  })
  return parts.flatMap(([name, expected, given]) =>
    compareSchemas(`${at}.${name}`, { in: reader.in, of: expected }, { in: writer.in, of: given }),
  )
}
