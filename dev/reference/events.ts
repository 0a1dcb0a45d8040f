/** The page of all events of the runtime. */
import type { TSType } from 'oxc-parser'
import { type Field, fieldsOf, isTag, membersOf, referenceName, typeText } from './fields.ts'
import { code, type Page, pageText, table } from './markdown.ts'
import {
  commentBefore,
  type Declaration,
  declarationOf,
  lineOf,
  type Package,
  type SourceFile,
  type Sources,
} from './sources.ts'
import { usersOf } from './users.ts'
import { type UnionValue, unionValues } from './values.ts'

interface Event {
  readonly name: string
  /** When it is published. */
  readonly when: string
  readonly fields: readonly Field[]
  readonly file: SourceFile
  readonly start: number
}

/** Writes the page of a union type whose members have a field `type`. */
export function eventsPage(sources: Sources, owner: Package, union: Declaration): Page {
  const events = eventsOf(sources, union)
  const common = commonDescriptions(events)
  const values = fieldValues(sources, events)
  const problems = [
    ...events.flatMap((event) => problemsOf(event, common)),
    ...values.flatMap(silentValues),
  ]
  if (events.length === 0) problems.push(`${union.file.path}: ${union.name} has no events`)
  const users = usersOf(sources, owner, union.name)
  const blocks = [
    `Events are plain objects of the type ${code(union.name)}. ${code(owner.name)} has these functions for them:`,
    users.map(({ label, comment }) => `- ${code(label)}: ${comment.join(' ')}`).join('\n'),
    table(
      ['event', 'published when'],
      events.map(({ name, when }) => [`[${code(name)}](#${name})`, when]),
    ),
    ...events.flatMap((event) => [
      `## ${code(event.name)}`,
      event.when,
      table(
        ['field', 'type', 'meaning'],
        event.fields.map((field) => [
          code(field.name),
          code(typeText(field.file, field.type)),
          meaningOf(field, common),
        ]),
      ),
    ]),
    ...valueBlocks(values),
  ]
  const from = [...new Set([union, ...events].map(({ file }) => file.path))]
  return { text: pageText('Events', from, blocks), problems }
}

function eventsOf(sources: Sources, { node, file }: Declaration): readonly Event[] {
  if (node.type !== 'TSTypeAliasDeclaration') return []
  const members = node.typeAnnotation.type === 'TSUnionType' ? node.typeAnnotation.types : []
  return members.flatMap((member) => eventsOfMember(sources, file, member))
}

function eventsOfMember(sources: Sources, file: SourceFile, member: TSType): readonly Event[] {
  if (member.type === 'TSParenthesizedType')
    return eventsOfMember(sources, file, member.typeAnnotation)
  if (member.type === 'TSIntersectionType') return eventsOfIntersection(sources, file, member.types)
  const name = referenceName(member)
  if (name !== undefined) {
    const found = declarationOf(sources, file, name)
    return found === undefined ? [] : eventsOf(sources, found)
  }
  if (member.type !== 'TSTypeLiteral') return []
  const fields = membersOf(file, member.members)
  const tag = fields.find(isTag)
  if (tag === undefined) return []
  const when = commentBefore(file, member.start).join(' ')
  const type = typeText(file, tag.type).replaceAll("'", '')
  const others = fields.filter((field) => field !== tag)
  return [{ name: type, when, fields: others, file, start: member.start }]
}

/** Returns the events of the first type, each with the fields of the other types. */
function eventsOfIntersection(
  sources: Sources,
  file: SourceFile,
  [first, ...others]: readonly TSType[],
): readonly Event[] {
  if (first === undefined) return []
  const added = others.flatMap((other) => {
    const found = declarationOf(sources, file, referenceName(other) ?? '')
    return found === undefined ? [] : fieldsOf(sources, found, () => false).fields
  })
  return eventsOfMember(sources, file, first).map((event) => ({
    ...event,
    fields: [...event.fields, ...added],
  }))
}

/** Returns the descriptions of the fields that most events share. The first event has them. */
function commonDescriptions([first]: readonly Event[]): ReadonlyMap<string, string> {
  const described = (first?.fields ?? []).filter(({ comment }) => comment.length > 0)
  return new Map(described.map(({ name, comment }) => [name, comment.join(' ')]))
}

const meaningOf = ({ name, comment }: Field, common: ReadonlyMap<string, string>) =>
  comment.length > 0 ? comment.join(' ') : (common.get(name) ?? '')

function problemsOf(
  { name, when, fields, file, start }: Event,
  common: ReadonlyMap<string, string>,
): readonly string[] {
  const where = `${file.path}:${lineOf(file, start)}: the event ${name}`
  const silent = fields.filter((field) => meaningOf(field, common) === '')
  return [
    ...(when === '' ? [`${where} has no description`] : []),
    ...silent.map((field) => `${where}: the field ${field.name} has no description`),
  ]
}

interface FieldValues {
  readonly declaration: Declaration
  readonly values: readonly UnionValue[]
}

/** Returns the types of fields that are unions of texts. */
function fieldValues(sources: Sources, events: readonly Event[]): readonly FieldValues[] {
  const found = new Map<string, FieldValues>()
  for (const { file, type } of events.flatMap(({ fields }) => fields)) {
    const name = referenceName(type)
    const declaration = name === undefined ? undefined : declarationOf(sources, file, name)
    const values = declaration === undefined ? [] : unionValues(declaration)
    if (declaration !== undefined && values.length > 0) {
      found.set(declaration.name, { declaration, values })
    }
  }
  return [...found.values()]
}

const silentValues = ({ declaration: { name, file }, values }: FieldValues) =>
  values
    .filter(({ comment }) => comment.length === 0)
    .map(
      ({ value, start }) =>
        `${file.path}:${lineOf(file, start)}: the value '${value}' of ${name} has no description`,
    )

function valueBlocks(found: readonly FieldValues[]): readonly string[] {
  const blocks = found.flatMap(({ declaration, values }) => [
    `### ${code(declaration.name)}`,
    table(
      ['value', 'meaning'],
      values.map(({ value, comment }) => [code(`'${value}'`), comment.join(' ')]),
    ),
  ])
  return blocks.length === 0 ? [] : ['## Values', ...blocks]
}
