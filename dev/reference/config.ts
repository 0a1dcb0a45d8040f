/** The page of the config of the server and of environment variables. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Visitor } from 'oxc-parser'
import { isSameValue, literalValue } from './defaults.ts'
import { describe, shownDefault } from './descriptions.ts'
import { fieldsOf } from './fields.ts'
import { anchorsOf, code, type Page, pageText, table } from './markdown.ts'
import { type Declaration, lineOf, type SourceFile, type Sources } from './sources.ts'

/** The part of JSON Schema that the config uses. */
export interface Schema {
  readonly type?: string | readonly string[]
  readonly description?: string
  readonly default?: unknown
  readonly enum?: readonly string[]
  readonly minimum?: number
  readonly maximum?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly additionalProperties?: Schema | false
}

export interface ConfigTables {
  /** Path of the JSON Schema. A test of the server keeps it equal to the code. */
  readonly schema: string
  /** Interface of the environment variables. */
  readonly environment: Declaration
  /** Folders whose files may read environment variables. */
  readonly readers: readonly string[]
}

const INTRO = `A text may contain \`\${NAME}\` or \`\${NAME:-default}\`, which are replaced by environment variables. If \`NAME\` is not
set, and \`NAME_FILE\` is, the content of that file is used. A duration is \`'250ms'\`, \`'5s'\`, \`'2m'\`, \`'1h'\`, \`'7d'\` or a
number of milliseconds. \`redrive config validate\` checks a config, and \`redrive config print\` prints it with all defaults.`

export function configPage(root: string, sources: Sources, tables: ConfigTables): Page {
  const schema = JSON.parse(readFileSync(join(root, tables.schema), 'utf8')) as Schema
  const problems: string[] = []
  const sections = sectionsOf(schema, [])
  const headings = sections.map(({ path }) => headingOf(path))
  const anchors = new Map(anchorsOf(headings).map((anchor, at) => [headings[at] ?? '', anchor]))
  const blocks = sections.flatMap(({ path, schema: section }) => [
    `## ${headingOf(path)}`,
    path.length === 0 ? '' : sentence(section.description ?? ''),
    table(
      ['key', 'type', 'default', 'meaning'],
      rowsOf(section, path, anchors, (problem) => problems.push(`${tables.schema}: ${problem}`)),
    ),
  ])
  const { environment } = tables
  problems.push(...unknownVariables(sources, tables))
  const text = pageText(
    'Config and environment',
    [tables.schema, environment.file.path],
    [
      INTRO,
      ...blocks,
      '## Environment variables',
      table(['variable', 'meaning'], variableRows(sources, environment, problems)),
    ],
  )
  return { text, problems }
}

interface Section {
  readonly path: readonly string[]
  readonly schema: Schema
}

const headingOf = (path: readonly string[]) =>
  path.length === 0 ? 'Top level' : code(path.join('.'))

/** Returns the objects of the schema, each before the objects in it. */
function sectionsOf(schema: Schema, path: readonly string[]): readonly Section[] {
  const inner = Object.entries(schema.properties ?? {}).flatMap(([key, value]) =>
    objectsIn(value, [...path, key]),
  )
  return [{ path, schema }, ...inner]
}

function objectsIn(schema: Schema, path: readonly string[]): readonly Section[] {
  const { items, anyOf = [], additionalProperties, description } = schema
  if (schema.properties !== undefined) return sectionsOf(schema, path)
  const last = path.at(-1) ?? ''
  const withDescription = (one: Schema): Schema => ({ ...(description && { description }), ...one })
  if (items !== undefined)
    return objectsIn(withDescription(items), [...path.slice(0, -1), `${last}[]`])
  if (additionalProperties)
    return objectsIn(withDescription(additionalProperties), [...path, 'NAME'])
  return anyOf.flatMap((one) => objectsIn(withDescription(one), path))
}

function rowsOf(
  { properties = {}, required = [] }: Schema,
  path: readonly string[],
  anchors: ReadonlyMap<string, string>,
  report: (problem: string) => void,
): readonly (readonly string[])[] {
  return Object.entries(properties).map(([key, schema]) => {
    const name = [...path, key].join('.')
    const { meaning, default: value } = describe(schema.description ?? '')
    const [section] = objectsIn(schema, [...path, key])
    const isRequired = required.includes(key)
    if (meaning === '') report(`the key ${name} has no description`)
    if (!isRequired && value === undefined && section === undefined) {
      report(`the key ${name} states no default`)
    }
    const wrong = wrongDefault(schema.default, value)
    if (wrong !== undefined) report(`the key ${name} ${wrong}`)
    const type = typeText(schema)
    return [
      code(key),
      section === undefined ? type : `[${type}](#${anchors.get(headingOf(section.path))})`,
      isRequired ? 'required' : shownDefault(value ?? ''),
      withoutRange(meaning, type),
    ]
  })
}

/** Removes the range from the meaning when the type has it as well. */
function withoutRange(meaning: string, type: string): string {
  const [range] = / \(.*\)$/.exec(type) ?? []
  return range === undefined ? meaning : meaning.replace(range, '')
}

function wrongDefault(used: unknown, stated: string | undefined): string | undefined {
  const expected = stated === undefined ? undefined : literalValue(stated)
  const isValue = typeof used === 'string' || typeof used === 'number' || typeof used === 'boolean'
  if (!isValue || expected === undefined || isSameValue(used, expected)) return undefined
  return `states the default ${stated}, and the schema has ${String(used)}`
}

/** Returns the type in words. */
function typeText({
  type,
  enum: values,
  items,
  anyOf,
  additionalProperties,
  ...rest
}: Schema): string {
  if (values !== undefined) return code(values.map((value) => `'${value}'`).join(' | '))
  if (anyOf !== undefined) return unionText(anyOf)
  if (items !== undefined) return `list of ${plural(typeText(items))}`
  if (additionalProperties) return `${plural(typeText(additionalProperties))} by name`
  // Only durations are a text or a number.
  if (Array.isArray(type)) return 'duration'
  if (type === 'integer') return `whole number${rangeText(rest)}`
  return TYPES[String(type)] ?? String(type)
}

const TYPES: Readonly<Record<string, string>> = {
  string: 'text',
  boolean: 'true or false',
  number: 'number',
  object: 'object',
}

const PLURALS: Readonly<Record<string, string>> = { text: 'texts', object: 'objects' }
const plural = (text: string) => PLURALS[text] ?? text

const rangeText = ({ minimum, maximum }: Schema) =>
  minimum === undefined || maximum === undefined
    ? ''
    : ` (${minimum.toLocaleString('en')}–${maximum.toLocaleString('en')})`

/** Leaves out a text after another type: a placeholder produces it, for a number, a list or true and false. */
function unionText(types: readonly Schema[]): string {
  const isStandIn = ({ type }: Schema, index: number) => index > 0 && type === 'string'
  return types
    .filter((one, index) => !isStandIn(one, index))
    .map(typeText)
    .join(', or ')
}

const sentence = (text: string) => describe(text).meaning

function variableRows(
  sources: Sources,
  environment: Declaration,
  problems: string[],
): readonly (readonly string[])[] {
  const { fields } = fieldsOf(sources, environment, () => false)
  return fields.map(({ name, comment, file, start }) => {
    if (comment.length === 0) {
      problems.push(`${file.path}:${lineOf(file, start)}: the variable ${name} has no description`)
    }
    return [code(name), comment.join(' ')]
  })
}

/** Returns a problem for each variable that code reads by name and that the interface does not list. */
function unknownVariables(
  sources: Sources,
  { environment, readers }: ConfigTables,
): readonly string[] {
  const { fields } = fieldsOf(sources, environment, () => false)
  const known = new Set(fields.map(({ name }) => name))
  return readers
    .flatMap((folder) => sources.filesOf(folder))
    .flatMap((file) =>
      variablesIn(file)
        .filter(({ name }) => !known.has(name))
        .map(
          ({ name, line }) =>
            `${file.path}:${line}: ${environment.name} in ${environment.file.path} does not list the variable ${name}`,
        ),
    )
}

function variablesIn(
  file: SourceFile,
): readonly { readonly name: string; readonly line: number }[] {
  const found: { name: string; line: number }[] = []
  new Visitor({
    MemberExpression({ object, property, start }) {
      if (!/(^|\.)env$/.test(file.text.slice(object.start, object.end))) return
      const name = property.type === 'Literal' ? property.value : undefined
      if (typeof name === 'string') found.push({ name, line: lineOf(file, start) })
    },
  }).visit(file.program)
  return found
}
