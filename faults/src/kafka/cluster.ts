import { services } from '../services.ts'

/** Nodes are numbered from 1, in the order of their addresses. */
export type NodeNumber = 1 | 2 | 3

const on = (...args: readonly string[]) => services('do', 'kafka-cluster', ...args)

export async function controller(): Promise<NodeNumber> {
  return Number(await on('controller')) as NodeNumber
}

export async function killNode(node: NodeNumber): Promise<void> {
  await on('kill_node', String(node))
}

/** Resolves when it has caught up with the others. */
export async function startNode(node: NodeNumber): Promise<void> {
  await on('start_node', String(node))
}
