import { services } from '../services.ts'
import { becomesTrue } from '../wait.ts'

/** Nodes are numbered from 1, in the order of their addresses. */
export type NodeNumber = 1 | 2 | 3

const NODES: readonly NodeNumber[] = [1, 2, 3]

const on = (...args: readonly string[]) => services('do', 'rabbitmq-cluster', ...args)

export async function leaderOf(queue: string): Promise<NodeNumber> {
  return Number(await on('leader', queue)) as NodeNumber
}

export async function killNode(node: NodeNumber): Promise<void> {
  await on('kill_node', String(node))
}

/** Resolves when it has rejoined the others. */
export async function startNode(node: NodeNumber): Promise<void> {
  await patiently(() => on('start_node', String(node)))
  await hastenDeadLetters([node])
}

/** Cuts a node off from the others, but not from its clients. */
export async function partitionNode(node: NodeNumber): Promise<void> {
  await on('partition_node', String(node))
}

/** Ends every cut. */
export async function reunite(): Promise<void> {
  await on('heal')
}

/** 2 minutes: a port that a client was given by the system meanwhile is free again after one. */
const START_MS = 120_000

async function patiently(start: () => Promise<unknown>): Promise<void> {
  let problem: unknown
  const hasStarted = await becomesTrue(
    () =>
      start().then(
        () => true,
        (error: unknown) => {
          problem = error
          return false
        },
      ),
    { withinMs: START_MS, everyMs: 1_000 },
  )
  if (!hasStarted) throw problem
}

export async function memoryAlarm(state: 'on' | 'off'): Promise<void> {
  await on('memory_alarm', state)
}

/** A setting of the broker, until the node restarts. */
export async function setBroker(
  setting: string,
  value: number,
  nodes: readonly NodeNumber[] = NODES,
): Promise<void> {
  const expression = `application:set_env(rabbit, ${setting}, ${value}).`
  await Promise.all(nodes.map((node) => on('ctl', String(node), 'eval', expression)))
}

/**
 * How long RabbitMQ waits before it moves an expired message again whose move was not confirmed. Its
 * default is three minutes: a retry that was on its way from its delay queue to a source whose leader
 * just died would be that late. Ten seconds, as we wait for our own confirms.
 */
export async function hastenDeadLetters(nodes: readonly NodeNumber[] = NODES): Promise<void> {
  await setBroker('dead_letter_worker_publisher_confirm_timeout', 10_000, nodes)
}
