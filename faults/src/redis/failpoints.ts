import type { Redis } from 'ioredis'
import type { Failpoint, Step } from './consumer-options.ts'

type Argument = string | Buffer

/** Returns the step of a script. Keys and arguments show it, so this uses no code of the transport. */
function stepOf(keys: readonly Argument[], args: readonly Argument[]): Step | undefined {
  const target = String(keys.at(-1))
  const has = (text: string) => args.some((one) => one === text)
  if (keys.length === 3 && target.endsWith(':retry')) return 'claim'
  if (target.endsWith(':retry')) return 'retry'
  if (target.endsWith(':dlq')) return has('redrive-quarantined') ? 'quarantine' : 'dead-letter'
  if (has('done')) return 'settle'
  if (has('return')) return 'give-back'
  return args.length === 3 ? 'declare' : undefined
}

/** A claim without messages is no step. */
const isEmptyClaim = (reply: unknown) => (reply as readonly unknown[][]).at(-1)?.length === 0

const COMMANDS = ['evalsha', 'eval', 'evalshaBuffer', 'evalBuffer'] as const

/**
 * Makes a client kill its process at one point of one step. It is between the transport and the
 * client library, so the transport runs unchanged.
 */
export function dyingAt(
  client: Redis,
  { step, point }: Failpoint,
  die: (where: string) => never,
): Redis {
  const methods: Partial<Record<string, unknown>> = {}
  for (const command of COMMANDS) {
    // The types of the client do not list all four.
    const method = Reflect.get(client, command) as (...args: unknown[]) => Promise<unknown>
    const run = method.bind(client)
    methods[command] = async (script: string, count: number, ...rest: Argument[]) => {
      const isMeant = stepOf(rest.slice(0, count), rest.slice(count)) === step
      if (isMeant && point === 'before') die(`${step} before`)
      const reply = await run(script, count, ...rest)
      if (isMeant && !(step === 'claim' && isEmptyClaim(reply))) die(`${step} after`)
      return reply
    }
  }
  return new Proxy(client, {
    get: (target, name) => methods[String(name)] ?? (Reflect.get(target, name, target) as unknown),
  })
}
