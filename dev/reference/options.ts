/** The page of all options: every exported type whose name ends in `Options`. */
import { defaultProblem } from './defaults.ts'
import { describe, shownDefault } from './descriptions.ts'
import { type Field, fieldsOf, isTag, membersOf, objectsIn } from './fields.ts'
import { code, list, type Page, pageText, table } from './markdown.ts'
import { type OptionType, optionTypesOf } from './option-types.ts'
import { lineOf, packagesIn, type Sources } from './sources.ts'
import { createTypeLinks, linkTo, type TypeLinks } from './type-links.ts'
import { usersOf } from './users.ts'

/** The packages that an application configures, in the order of the page. */
const FOLDERS: readonly RegExp[] = [
  /^packages\/core$/,
  /^packages\/runtime$/,
  /^packages\/transports\//,
  /^packages\/stores\//,
  /^packages\/sinks$/,
  /^packages\/alerts$/,
]

const INTRO = `A duration is \`'250ms'\`, \`'5s'\`, \`'2m'\`, \`'1h'\`, \`'7d'\` or a number of milliseconds. Invalid options are
rejected at the start with one error that lists every problem.`

export function optionsPage(sources: Sources): Page {
  const types = optionTypesOf(sources, packagesIn(sources, FOLDERS))
  const links = createTypeLinks(sources, types)
  const problems: string[] = []
  const byPackage = Map.groupBy(types, (type) => type.package)
  const contents = [...byPackage].map(([{ name }, own]) => [code(name), own.map(linkTo).join(', ')])
  const blocks = [...byPackage].flatMap(([{ name }, own]) => [
    `## ${name}`,
    ...own.flatMap((type) => blocksOf(sources, links, type, problems)),
  ])
  const from = [...byPackage.keys()].map(({ folder }) => `${folder}/src`)
  const text = pageText('Options', from, [
    INTRO,
    table(['package', 'options'], contents),
    ...blocks,
  ])
  return { text, problems }
}

function blocksOf(
  sources: Sources,
  links: TypeLinks,
  { package: owner, declaration }: OptionType,
  problems: string[],
): readonly string[] {
  const { name, node, file, comment } = declaration
  const heading = `### ${code(name)}`
  const users = usersOf(sources, owner, name).map(({ label }) => code(label))
  const about = [...comment, ...(users.length > 0 ? [`Used by ${list(users)}.`] : [])]
  if (node.type === 'TSTypeAliasDeclaration') {
    return [heading, about.join(' '), links.alias(file, node.typeAnnotation)]
  }
  const { fields, bases } = fieldsOf(sources, declaration, (one) => links.find(one) !== undefined)
  const inherited = bases.flatMap((base) => links.find(base) ?? [])
  if (inherited.length > 0) about.push(`Also has the options of ${list(inherited.map(linkTo))}.`)
  const rows = fields.flatMap((field) => rowsOf(links, field, name, problems))
  const options = rows.length === 0 ? '' : table(['option', 'type', 'default', 'meaning'], rows)
  return [heading, about.join(' '), options]
}

/** Returns the rows of a field: its own, and those of the fields of inline objects. */
function rowsOf(
  links: TypeLinks,
  field: Field,
  owner: string,
  problems: string[],
  prefix = '',
): readonly (readonly string[])[] {
  const { isOptional, type, file } = field
  const name = `${prefix}${field.name}`
  const { meaning, default: value } = describe(field.comment.join(' '))
  const nested = objectsIn(type)
    .flatMap(({ members }) => membersOf(file, members))
    .filter((part) => !isTag(part))
  // Options with a separate table have their defaults there.
  const needsDefault = isOptional && nested.length === 0 && !links.hasLink(file, type)
  const found = [
    meaning === '' ? 'has no description' : undefined,
    needsDefault && value === undefined ? 'states no default' : undefined,
    defaultProblem(file, field.name, value),
  ]
  const where = `${file.path}:${lineOf(file, field.start)}: the option ${owner}.${name}`
  problems.push(...found.flatMap((problem) => (problem === undefined ? [] : `${where} ${problem}`)))
  const shown = isOptional ? shownDefault(value ?? '') : 'required'
  return [
    [code(name), links.cell(file, type), shown, meaning],
    ...nested.flatMap((part) => rowsOf(links, part, owner, problems, `${name}.`)),
  ]
}
