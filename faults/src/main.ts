import { parseArgs } from 'node:util'
import { playSubject, type Subject } from './harness/play.ts'
import { huntMutants } from './harness/run-mutants.ts'
import type { Scale } from './harness/scenario.ts'
import { SUBJECTS } from './subjects.ts'
import { UsageError } from './usage.ts'

const NAMES = SUBJECTS.map(({ name }) => name).join('|')

const HELP = `Usage:
  pnpm faults ${NAMES} [--smoke|--quick] [--only SCENARIO] [--messages N]
      Breaks a real server and its consumers on purpose, and counts lost and duplicated messages.
      --smoke takes about a minute, --quick a few minutes, the full run up to half an hour.
  pnpm faults ${NAMES}|all --mutants [--only SCENARIO]
      Adds mistakes to a copy of Redrive, and checks that the scenarios find each of them.
  --stop-at-first ends a scenario at the first broken rule, or when there is no more progress.
`

const print = (text: string) => void process.stdout.write(`${text}\n`)

function parse(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        smoke: { type: 'boolean', default: false },
        quick: { type: 'boolean', default: false },
        only: { type: 'string' },
        messages: { type: 'string' },
        mutants: { type: 'boolean', default: false },
        'stop-at-first': { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    })
  } catch (error) {
    throw new UsageError(`${error instanceof Error ? error.message : String(error)}\n\n${HELP}`)
  }
}

type Values = ReturnType<typeof parse>['values']

/** Returns the subjects of this name; throws with the names that exist. */
function subjectsOf(name: string | undefined, { mutants }: Values): readonly Subject[] {
  if (mutants && (name === undefined || name === 'all')) return SUBJECTS
  const named = SUBJECTS.filter((subject) => subject.name === name)
  if (named.length > 0) return named
  if (name === undefined)
    throw new UsageError(`The subject is missing. Choose one of: ${NAMES}.\n\n${HELP}`)
  if (name === 'all')
    throw new UsageError(
      'The subject "all" requires --mutants. Without --mutants, play one subject at a time.',
    )
  throw new UsageError(`There is no subject "${name}". Choose one of: ${NAMES}.`)
}

function scaleOf({ smoke, quick }: Values): Scale {
  if (smoke && quick) throw new UsageError('--smoke and --quick cannot be used together.')
  if (smoke) return 'smoke'
  return quick ? 'quick' : 'full'
}

function messagesOf({ messages }: Values): number | undefined {
  if (messages === undefined) return undefined
  const count = Number(messages)
  if (Number.isSafeInteger(count) && count > 0) return count
  throw new UsageError(`--messages must be a whole number above 0, but is "${messages}".`)
}

async function main(args: readonly string[]): Promise<boolean> {
  const { values, positionals } = parse(args)
  if (values.help) {
    print(HELP)
    return true
  }
  const subjects = subjectsOf(positionals[0], values)
  const { only } = values
  if (values.mutants) return huntMutants(subjects, { only, print })
  const choice = {
    scale: scaleOf(values),
    only,
    messages: messagesOf(values),
    stopAtFirst: values['stop-at-first'],
    print,
  }
  let isGood = true
  for (const subject of subjects) isGood = (await playSubject(subject, choice)) && isGood
  return isGood
}

/** Prints a verdict as the last line in every case and sets the matching exit code. */
function fail(error: unknown): never {
  const { message, stack = message } = error instanceof Error ? error : new Error(String(error))
  const reason = (message.split('\n')[0] ?? '').replace(/[.:]$/, '')
  process.stderr.write(`${error instanceof UsageError ? message : stack}\n`)
  print(`SHORT ${['faults', ...process.argv.slice(2)].join(' ')} did not finish: ${reason}, goal 0`)
  process.exit(1)
}

// A broker that dies rejects promises, including some that the harness does not await.
process.on('uncaughtException', fail)
process.exitCode = (await main(process.argv.slice(2)).catch(fail)) ? 0 : 1
