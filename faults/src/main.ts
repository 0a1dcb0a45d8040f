import { parseArgs } from 'node:util'
import { playCatalog } from './catalog/main.ts'
import { MUTANTS as CATALOG_MUTANTS } from './catalog/mutants.ts'
import { playEmission } from './emission/main.ts'
import { MUTANTS as EMISSION_MUTANTS } from './emission/mutants.ts'
import { type HuntOptions, huntMutants } from './hunt.ts'
import { KAFKA } from './kafka/main.ts'
import { MUTANTS as KAFKA_MUTANTS } from './kafka/mutants.ts'
import { type Choice, playChosen } from './play.ts'
import { POSTGRES } from './postgres/main.ts'
import { MUTANTS as POSTGRES_MUTANTS } from './postgres/mutants.ts'
import { RABBITMQ } from './rabbitmq/main.ts'
import { MUTANTS as RABBITMQ_MUTANTS } from './rabbitmq/mutants.ts'
import { playServer } from './server/main.ts'
import { MUTANTS as SERVER_MUTANTS } from './server/mutants.ts'

const HELP = `Usage:
  pnpm faults rabbitmq|postgres|kafka|emission|catalog|server [--quick] [--only SCENARIO] [--messages N]
      Breaks a real server and its consumers on purpose, and counts what came through.
  pnpm faults rabbitmq|postgres|kafka|emission|catalog|server --mutants [--only SCENARIO]
      Breaks the transport instead, and checks that the scenarios find it.
`

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    quick: { type: 'boolean', default: false },
    only: { type: 'string' },
    messages: { type: 'string' },
    mutants: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

const print = (text: string) => void process.stdout.write(`${text}\n`)

interface Command {
  play(choice: Choice): Promise<boolean>
  hunt(options: HuntOptions): Promise<boolean>
}

const COMMANDS: Readonly<Record<string, Command>> = {
  rabbitmq: {
    play: (choice) => playChosen(RABBITMQ, choice),
    hunt: (options) => huntMutants('rabbitmq', RABBITMQ_MUTANTS, options),
  },
  postgres: {
    play: (choice) => playChosen(POSTGRES, choice),
    hunt: (options) => huntMutants('postgres', POSTGRES_MUTANTS, options),
  },
  emission: {
    play: playEmission,
    hunt: (options) => huntMutants('emission', EMISSION_MUTANTS, options),
  },
  catalog: {
    play: playCatalog,
    hunt: (options) => huntMutants('catalog', CATALOG_MUTANTS, options),
  },
  server: {
    play: playServer,
    hunt: (options) => huntMutants('server', SERVER_MUTANTS, options),
  },
  kafka: {
    play: (choice) => playChosen(KAFKA, choice),
    hunt: (options) => huntMutants('kafka', KAFKA_MUTANTS, options),
  },
}

async function main(): Promise<boolean> {
  const command = COMMANDS[positionals[0] ?? '']
  if (values.help || command === undefined) {
    print(HELP)
    return values.help
  }
  const { only } = values
  if (values.mutants) return command.hunt({ only, print })
  return command.play({
    scale: values.quick ? 'quick' : 'full',
    only,
    messages: values.messages === undefined ? undefined : Number(values.messages),
    print,
  })
}

process.exitCode = (await main()) ? 0 : 1
