/** Generates the page of the commands from the definition of the program. */
import { programOf } from '../../packages/cli/src/program.ts'
import { code, type Page, pageText, table } from './markdown.ts'

type Command = ReturnType<typeof programOf>
type Option = Command['options'][number]

export function cliPage(): Page {
  // The page needs only the definition. No command runs.
  const root = programOf(undefined as never, () => async () => undefined)
  const commands = root.commands.flatMap((command) => withChildren(command, 'redrive'))
  const blocks = [
    'Run a command with `npx redrive COMMAND`. `--help` prints the same text. [Exit codes](errors.md#exit-codes-of-the-command-line) are for scripts.',
    '## Options of every command',
    optionsTable(root),
    ...commands.flatMap(({ title, command }) => sectionOf(title, command)),
  ]
  const problems = commands
    .filter(({ command }) => command.description() === '')
    .map(({ title }) => `${title} has no description`)
  return { text: pageText('Commands', ['packages/cli/src/program'], blocks), problems }
}

interface Named {
  readonly title: string
  readonly command: Command
}

/** Returns the commands that do something: most commands with subcommands only group them. */
function withChildren(command: Command, parent: string): readonly Named[] {
  const title = `${parent} ${command.name()}`
  const { _actionHandler: acts } = command as unknown as { readonly _actionHandler?: unknown }
  const children = command.commands.flatMap((child) => withChildren(child, title))
  return (acts ?? undefined) === undefined ? children : [{ title, command }, ...children]
}

function sectionOf(title: string, command: Command): readonly string[] {
  const words = command.registeredArguments.map((one) => {
    const name = `${one.name()}${one.variadic ? '…' : ''}`
    return one.required ? name.toUpperCase() : `[${name.toUpperCase()}]`
  })
  return [
    `## ${title}`,
    `${sentence(command.description())}.`,
    code([title, ...words].join(' ')),
    command.options.length === 0 ? '' : optionsTable(command),
  ]
}

const optionsTable = ({ options }: Command): string =>
  table(
    ['option', 'meaning'],
    options
      .filter(({ hidden }) => !hidden)
      .map((option) => [code(option.flags), escaped(meaningOf(option))]),
  )

function meaningOf({ description, argChoices, defaultValue }: Option): string {
  const choices = argChoices === undefined ? '' : `: ${argChoices.join(', ')}`
  const isShown = defaultValue !== undefined && !description.includes('default')
  return `${description}${choices}${isShown ? ` (default ${String(defaultValue)})` : ''}`
}

const sentence = (text: string): string => escaped(text.charAt(0).toUpperCase() + text.slice(1))

const escaped = (text: string): string => text.replaceAll('<', '&lt;')
