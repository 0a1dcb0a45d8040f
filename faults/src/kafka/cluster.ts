import { services } from '../harness/services.ts'
import type { KafkaService } from './world.ts'

/** Nodes are numbered from 1, in the order of their addresses. */
export type NodeNumber = 1 | 2 | 3

const on = (...args: readonly string[]) => services('do', 'kafka-cluster', ...args)

export async function controller(): Promise<NodeNumber> {
  return Number(await on('controller')) as NodeNumber
}

/** Kills a node with SIGKILL. With one broker, kills that one. */
export async function killNode(service: KafkaService, node: NodeNumber): Promise<void> {
  await (service === 'kafka-cluster'
    ? on('kill_node', String(node))
    : services('do', service, 'kill'))
}

/** Resolves when the node has caught up with the others. */
export async function startNode(service: KafkaService, node: NodeNumber): Promise<void> {
  await (service === 'kafka-cluster'
    ? on('start_node', String(node))
    : services('do', service, 'start'))
}
