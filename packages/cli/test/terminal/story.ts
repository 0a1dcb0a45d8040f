import { QUEUE } from './incident.ts'
import type { Terminal } from './tmux.ts'

export interface BrokerAddresses {
  readonly amqp: string
  readonly management: string
}

/** Types the commands of an engineer on call without a server. */
export async function look(
  { type }: Terminal,
  { amqp, management }: BrokerAddresses,
): Promise<void> {
  await type(`npx redrive peek ${amqp} ${QUEUE}.dlq`)
  await type(`npx redrive peek ${amqp} ${QUEUE}.dlq --show 4`)
  await type(`npx redrive doctor ${management}`)
  await type('npx redrive migrate')
}

/** Types the commands that find and show the failures. Uses the prefixes of ids on the screen. */
export async function triage({ type }: Terminal): Promise<{ refused: string; misshapen: string }> {
  await type('npx redrive sources')
  const groups = await type('npx redrive groups list')
  const refused = found(groups, /^([0-9a-f]{4}) +transient/m)
  await type(`npx redrive groups show ${refused}`)
  const messages = await type(`npx redrive messages list group:${refused} --limit 5`)
  await type(`npx redrive messages show ${found(messages, /^([0-9a-f]{8}) +open/m)}`)
  return { refused, misshapen: found(groups, /^([0-9a-f]{4}) +schema/m) }
}

/** Plans and starts a replay, and returns the id of the run. */
export async function replay({ type, answer }: Terminal, group: string): Promise<string> {
  const plan = await type(`npx redrive replay plan group:${group} --rate 10`)
  const run = found(plan, /replay start ([0-9a-f-]{36})/)
  await answer(`npx redrive replay start ${run} --wait`, 'to orders?', 'y')
  return run
}

/** Types the commands that show the outcome and the audit log. */
export async function lookBack({ type }: Terminal, run: string): Promise<void> {
  await type(`npx redrive replay show ${run}`)
  await type('npx redrive groups list --open')
  await type('npx redrive replay list')
  await type('npx redrive audit list')
  await type('npx redrive audit verify')
}

function found(text: string, pattern: RegExp): string {
  const [, match] = pattern.exec(text) ?? []
  if (match === undefined) throw new Error(`Expected ${pattern} in:\n${text}`)
  return match
}
