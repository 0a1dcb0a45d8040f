/** The page of message headers: every interface whose name ends in `HeaderTable`. */
import { Visitor } from 'oxc-parser'
import { fieldsOf } from './fields.ts'
import { code, type Page, pageText, table } from './markdown.ts'
import {
  type Declaration,
  declarationOf,
  lineOf,
  packagesIn,
  type SourceFile,
  type Sources,
} from './sources.ts'

/** The packages that read or write headers of messages, in the order of the page. */
const FOLDERS: readonly RegExp[] = [
  /^packages\/core$/,
  /^packages\/runtime$/,
  /^packages\/transports\//,
  /^packages\/sinks$/,
]
/** A header of Redrive. Every such text in these packages must be in a table. */
const OWN = /^redrive-[a-z][a-z-]*$/

const INTRO =
  'Redrive adds its data to a message as headers. Headers of the producer stay unchanged. A header of Redrive that cannot be read counts as absent and is reported by an event.'

export function headersPage(sources: Sources): Page {
  const packages = packagesIn(sources, FOLDERS)
  const problems: string[] = []
  const names = new Set<string>()
  const paths = new Set<string>()
  const blocks = packages.flatMap((owner) =>
    tablesIn(sources, owner.folder).flatMap((declaration) => {
      paths.add(declaration.file.path)
      const { fields } = fieldsOf(sources, declaration, () => false)
      const rows = fields.map(({ name, comment, file, start }) => {
        names.add(name)
        const [format, meaning] = splitFormat(comment.join(' '))
        if (meaning === '') {
          const where = `${file.path}:${lineOf(file, start)}: the header ${name}`
          problems.push(`${where} needs a comment with a format and a meaning`)
        }
        return [code(name), format, meaning]
      })
      const { title, text } = introOf(declaration, problems)
      return [
        `## ${title}`,
        `${text} Package: ${code(owner.name)}.`.trim(),
        table(['header', 'format', 'meaning'], rows),
      ]
    }),
  )
  const files = packages.flatMap(({ folder }) => sources.filesOf(folder))
  problems.push(...files.flatMap((file) => unlisted(file, names)))
  return { text: pageText('Message headers', [...paths], [INTRO, ...blocks]), problems }
}

function tablesIn(sources: Sources, folder: string): readonly Declaration[] {
  return sources.filesOf(folder).flatMap((file) =>
    file.program.body.flatMap((statement) => {
      const node = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement
      const isTable =
        node?.type === 'TSInterfaceDeclaration' && node.id.name.endsWith('HeaderTable')
      return isTable ? (declarationOf(sources, file, node.id.name) ?? []) : []
    }),
  )
}

/** Splits a comment into its first sentence and the rest. */
function splitFormat(comment: string): readonly [string, string] {
  const end = comment.indexOf('. ')
  return end < 0 ? [comment, ''] : [comment.slice(0, end), comment.slice(end + 2)]
}

/** Returns the title and the text of a table from the first paragraph of its comment. */
function introOf(
  { name, file, node, comment: [first = ''] }: Declaration,
  problems: string[],
): { readonly title: string; readonly text: string } {
  if (first === '') {
    problems.push(`${file.path}:${lineOf(file, node.start)}: the table ${name} has no description`)
  }
  const [title, text] = splitFormat(first)
  return { title: title.replace(/\.$/, ''), text }
}

/** Returns a problem for each header of Redrive that no table lists. */
function unlisted(file: SourceFile, names: ReadonlySet<string>): readonly string[] {
  const found: string[] = []
  new Visitor({
    Literal({ value, start }) {
      if (typeof value !== 'string' || !OWN.test(value) || names.has(value)) return
      const where = `${file.path}:${lineOf(file, start)}`
      found.push(`${where}: no interface with the suffix HeaderTable lists the header ${value}`)
    },
  }).visit(file.program)
  return found
}
