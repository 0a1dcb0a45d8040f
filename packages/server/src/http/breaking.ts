import type { Json } from './openapi.ts'

/**
 * What a change of the contract takes from those who use it today. One rule for both directions: whatever
 * is written must be readable by whoever reads it. Of a request, the writer is of yesterday and the reader
 * of today; of an answer it is the other way round.
 */
export function breaking(before: Json, after: Json): readonly string[] {
  const problems: string[] = []
  for (const [name, was] of operationsOf(before)) {
    const is = operationsOf(after).get(name)
    if (is === undefined) problems.push(`${name}: is gone`)
    else problems.push(...ofOperation(name, { in: before, of: was }, { in: after, of: is }))
  }
  return problems
}

/** While the first number is 0 the second one says that something breaks. */
export function isRaised(before: Json, after: Json): boolean {
  const [was, is] = [before, after].map((one) => versionOf(one).split('.').map(Number))
  const [major = 0, minor = 0] = was ?? []
  const [newMajor = 0, newMinor = 0] = is ?? []
  return newMajor > major || (major === 0 && newMajor === 0 && newMinor > minor)
}

const versionOf = ({ info }: Json) =>
  (info as { readonly version?: string } | undefined)?.version ?? '0.0.0'

/** A part of a document, which its references are looked up in. */
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

function ofOperation(name: string, was: Part, is: Part): readonly string[] {
  return [
    ...ofParameters(name, was, is),
    ...reading(`${name} body`, schemaIn(is, 'requestBody'), schemaIn(was, 'requestBody')),
    ...ofAnswers(name, was, is),
  ]
}

interface Parameter {
  readonly name: string
  readonly in: string
  readonly required: boolean
  readonly schema: Json
}

function ofParameters(name: string, was: Part, is: Part): readonly string[] {
  const all = ({ of }: Part) => (of['parameters'] ?? []) as readonly Parameter[]
  const same = (one: Parameter) => (other: Parameter) =>
    one.name === other.name && one.in === other.in
  const gone = all(was).filter((one) => !all(is).some(same(one)))
  const problems = gone.map((one) => `${name} ${one.name}: is gone`)
  for (const one of all(is)) {
    const old = all(was).find(same(one))
    const isNew = one.required && old?.required !== true
    if (isNew) problems.push(`${name} ${one.name}: is required now`)
    if (old === undefined) continue
    const reader = { in: is.in, of: one.schema }
    problems.push(...reading(`${name} ${one.name}`, reader, { in: was.in, of: old.schema }))
  }
  return problems
}

function ofAnswers(name: string, was: Part, is: Part): readonly string[] {
  const answers = ({ of }: Part) => of['responses'] as Readonly<Record<string, Json>>
  return Object.keys(answers(was)).flatMap((status) => {
    if (answers(is)[status] === undefined) return [`${name}: no longer answers ${status}`]
    const [reader, writer] = [was, is].map((part) =>
      contentOf({ in: part.in, of: answers(part)[status] ?? {} }),
    )
    return reading(`${name} ${status}`, reader, writer)
  })
}

const schemaIn = (part: Part, name: string): Part | undefined =>
  part.of[name] === undefined ? undefined : contentOf({ in: part.in, of: part.of[name] as Json })

function contentOf(part: Part): Part | undefined {
  const content = (part.of['content'] ?? {}) as Readonly<Record<string, { schema: Json }>>
  const [type, one] = Object.entries(content)[0] ?? []
  if (one === undefined) return undefined
  // The type of the content is part of what is read.
  return {
    in: part.in,
    of: { type: 'object', required: [type], properties: { [type ?? '']: one.schema } },
  }
}

/** Nothing is written: then there is nothing to read either. */
function reading(
  at: string,
  reader: Part | undefined,
  writer: Part | undefined,
): readonly string[] {
  if (reader === undefined && writer === undefined) return []
  if (reader === undefined) return [`${at}: is no longer taken`]
  if (writer === undefined) return [`${at}: is expected now, or no longer given`]
  return readable(at, reader, writer)
}

/** What of all that fits the writer's schema does not fit the reader's. */
function readable(at: string, givenReader: Part, givenWriter: Part): readonly string[] {
  const [reader, writer] = [resolved(givenReader), resolved(givenWriter)]
  if (isAnything(reader.of)) return []
  const branches = branchesOf(writer)
  if (branches !== undefined || branchesOf(reader) !== undefined) {
    return (branches ?? [writer]).flatMap((one) => {
      const tries = (branchesOf(reader) ?? [reader]).map((other) => readable(at, other, one))
      // The one that fits best says best what is wrong.
      return tries.toSorted((a, b) => a.length - b.length)[0] ?? []
    })
  }
  return [
    ...ofType(at, reader.of, writer.of),
    ...ofBounds(at, reader.of, writer.of),
    ...ofProperties(at, reader, writer),
    ...ofItems(at, reader, writer),
  ]
}

function resolved(part: Part): Part {
  const { $ref } = part.of
  if (typeof $ref !== 'string') return part
  const components = part.in['components'] as { readonly schemas: Readonly<Record<string, Json>> }
  return { in: part.in, of: components.schemas[$ref.split('/').at(-1) ?? ''] ?? {} }
}

const NOTES: ReadonlySet<string> = new Set(['description', 'title'])
const isAnything = (schema: Json) => Object.keys(schema).every((name) => NOTES.has(name))

function branchesOf(part: Part): readonly Part[] | undefined {
  const branches = part.of['anyOf'] ?? part.of['oneOf']
  return (branches as readonly Json[] | undefined)?.map((of) => ({ in: part.in, of }))
}

function ofType(at: string, reader: Json, writer: Json): readonly string[] {
  const [expects, gives] = [typesOf(reader), typesOf(writer)]
  const isFit = gives.every((one) => expects.includes(one) || isNarrow(one, expects))
  if (expects.length > 0 && (gives.length === 0 || !isFit)) {
    return [`${at}: is ${gives.join(' or ')} and not ${expects.join(' or ')}`]
  }
  const [known, values] = [reader, writer].map(valuesOf)
  if (known === undefined) return []
  if (values === undefined) return [`${at}: may be more than ${known.join(', ')}`]
  const unknown = values.filter((value) => !known.includes(value))
  return unknown.map((value) => `${at}: ${String(value)} is not understood`)
}

/** One type, or several. */
const typesOf = (schema: Json) => {
  const type = (schema['type'] ?? []) as string | readonly string[]
  return typeof type === 'string' ? [type] : type
}
const isNarrow = (type: string, expected: readonly string[]) =>
  type === 'integer' && expected.includes('number')

const valuesOf = (schema: Json): readonly unknown[] | undefined =>
  'const' in schema ? [schema['const']] : (schema['enum'] as readonly unknown[] | undefined)

/** Of each bound, whether the reader's is narrower than the writer's. */
const LEAST = ['minimum', 'exclusiveMinimum', 'minLength', 'minItems', 'minProperties']
const MOST = ['maximum', 'exclusiveMaximum', 'maxLength', 'maxItems', 'maxProperties']
const EXACT = ['pattern', 'format', 'contentEncoding']

function ofBounds(at: string, reader: Json, writer: Json): readonly string[] {
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

function ofProperties(at: string, reader: Part, writer: Part): readonly string[] {
  const [known, given] = [reader, writer].map(
    ({ of }) => (of['properties'] ?? {}) as Readonly<Record<string, Json>>,
  )
  const [needed, sure] = [reader, writer].map(
    ({ of }) => (of['required'] ?? []) as readonly string[],
  )
  const missing = (needed ?? []).filter((name) => sure?.includes(name) !== true)
  const problems = missing.map((name) => `${at}.${name}: is needed, and may be absent`)
  const rest = reader.of['additionalProperties']
  for (const [name, schema] of Object.entries(given ?? {})) {
    const expected = known?.[name] ?? rest
    if (expected === false) problems.push(`${at}.${name}: is refused`)
    if (typeof expected !== 'object' || expected === null) continue
    const parts = [
      { in: reader.in, of: expected as Json },
      { in: writer.in, of: schema },
    ] as const
    problems.push(...readable(`${at}.${name}`, ...parts))
  }
  return problems
}

function ofItems(at: string, reader: Part, writer: Part): readonly string[] {
  const parts = (['items', 'additionalProperties'] as const).flatMap((name) => {
    const [expected, given] = [reader.of[name], writer.of[name]]
    const areBoth = typeof expected === 'object' && typeof given === 'object'
    return areBoth ? [[name, expected as Json, given as Json] as const] : []
  })
  return parts.flatMap(([name, expected, given]) =>
    readable(`${at}.${name}`, { in: reader.in, of: expected }, { in: writer.in, of: given }),
  )
}
