import { services } from '../harness/services.ts'
import { repeated } from '../harness/wait.ts'

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

/** Resolves when the node has rejoined the others. */
export async function startNode(node: NodeNumber): Promise<void> {
  await repeated(() => on('start_node', String(node)), START)
}

/** Cuts a node off from the other nodes, but not from its clients. */
export async function partitionNode(node: NodeNumber): Promise<void> {
  await on('partition_node', String(node))
}

/** Ends all partitions. */
export async function reunite(): Promise<void> {
  await on('heal')
}

/** 2 minutes: the system may have given the port to a client, and frees it after one minute. */
const START = { withinMs: 120_000, everyMs: 1_000 }

export async function memoryAlarm(state: 'on' | 'off'): Promise<void> {
  await on('memory_alarm', state)
}

/** Changes a setting of all nodes, of each until it restarts. */
export async function setBroker(setting: string, value: number): Promise<void> {
  const expression = `application:set_env(rabbit, ${setting}, ${value}).`
  await Promise.all(NODES.map((node) => on('ctl', String(node), 'eval', expression)))
}
