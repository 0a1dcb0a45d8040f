import { parseArgs } from 'node:util'
import { huntMutants } from './rabbitmq/hunt.ts'
import { faultsOfRabbitMq } from './rabbitmq/main.ts'

const HELP = `Usage:
  pnpm faults rabbitmq [--quick] [--only SCENARIO] [--messages N]
      Breaks a real broker and its consumers on purpose, and counts what came through.
  pnpm faults rabbitmq --mutants
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

async function main(): Promise<boolean> {
  const [broker] = positionals
  if (values.help || broker !== 'rabbitmq') {
    print(HELP)
    return values.help
  }
  if (values.mutants) return huntMutants(print)
  return faultsOfRabbitMq({
    scale: values.quick ? 'quick' : 'full',
    only: values.only,
    messages: values.messages === undefined ? undefined : Number(values.messages),
    print,
  })
}

process.exitCode = (await main()) ? 0 : 1
