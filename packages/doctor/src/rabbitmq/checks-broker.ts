import type { Check } from '../finding.ts'
import type { RabbitmqFacts } from './facts.ts'
import { isBefore } from './look.ts'
import { isQueue } from './roles.ts'

/** 3 nodes: the minimum number with which the loss of one is survived. */
const MIN_NODES = 3

/** Checks of the broker. */
export const BROKER_CHECKS: readonly Check<RabbitmqFacts>[] = [
  {
    id: 'rabbitmq.version',
    severity: 'loss',
    caps: 'C',
    looksFor: 'RabbitMQ before 3.10',
    why: 'It cannot dead-letter at least once: a retry may be lost on its way back to the source queue.',
    fix: 'use RabbitMQ 3.10 or later',
    hits: (facts) =>
      isBefore(facts, 3, 10) ? [{ subject: 'version', found: `RabbitMQ ${facts.version}` }] : [],
  },
  {
    id: 'rabbitmq.one-node',
    severity: 'loss',
    caps: 'B',
    looksFor: 'a broker with fewer than three nodes',
    why: 'When the disk of the only node is lost, every message is lost. Two nodes are not better: without one of them, the other has no majority.',
    fix: 'join two more nodes: rabbitmqctl join_cluster {node}, on each of them; then rabbitmq-queues grow',
    hits: ({ nodes = [] }) =>
      nodes.length > 0 && nodes.length < MIN_NODES
        ? [
            {
              subject: 'cluster',
              found: countOf(nodes.length),
              fill: { node: nodes[0]?.name ?? 'NODE' },
            },
          ]
        : [],
  },
  {
    id: 'rabbitmq.even-nodes',
    severity: 'advice',
    caps: 'A',
    looksFor: 'a cluster with an even number of nodes',
    why: 'The last node adds no safety, and a network partition into halves leaves no majority on either side.',
    fix: 'use three, five or seven nodes',
    hits: ({ nodes = [] }) =>
      nodes.length > MIN_NODES && nodes.length % 2 === 0
        ? [{ subject: 'cluster', found: countOf(nodes.length) }]
        : [],
  },
  {
    id: 'rabbitmq.node-down',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a node that is not running',
    why: 'The cluster survives fewer further failures, and queues without a majority stall.',
    fix: 'start it; or, if it is lost permanently: rabbitmqctl forget_cluster_node {subject}',
    hits: ({ nodes = [] }) =>
      nodes
        .filter(({ isRunning }) => !isRunning)
        .map(({ name }) => ({ subject: name, found: 'not running' })),
  },
  {
    id: 'rabbitmq.partitioned',
    severity: 'loss',
    caps: 'C',
    looksFor: 'a network partition between nodes',
    why: 'Both sides continued independently. When they are joined, messages that one side has accepted in classic queues since then are deleted.',
    fix: 'restart the side whose messages may be deleted; then set cluster_partition_handling = pause_minority',
    hits: ({ nodes = [] }) =>
      nodes
        .filter(({ cutOffFrom }) => cutOffFrom.length > 0)
        .map(({ name, cutOffFrom }) => ({
          subject: name,
          found: `cut off from ${cutOffFrom.join(', ')}`,
        })),
  },
  {
    id: 'rabbitmq.alarm',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a memory or disk alarm',
    why: 'The whole broker accepts no messages while one node has an alarm: retries and dead letters stay in flight.',
    fix: 'drain its queues or give it more {of}; see rabbitmq-diagnostics alarms',
    hits: ({ nodes = [] }) =>
      nodes.flatMap(({ name, memoryAlarm, diskAlarm }) => {
        if (!memoryAlarm && !diskAlarm) return []
        const of = memoryAlarm ? 'memory' : 'disk'
        return [{ subject: name, found: `short of ${of}`, fill: { of } }]
      }),
  },
  {
    id: 'rabbitmq.queue-missing',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a missing source queue',
    why: 'No consumer can use it, and messages published to it without mandatory are lost.',
    fix: "start a consumer with topology: 'declare', or declare what topologyOf({subject:js}) lists",
    hits: (facts) =>
      facts.queues === undefined
        ? []
        : [...facts.sources, ...facts.deadLetterQueues]
            .filter((name) => !isQueue(facts, name))
            .map((name) => ({ subject: name, found: `not in vhost ${facts.vhost}` })),
  },
  {
    id: 'rabbitmq.guest',
    severity: 'advice',
    caps: 'A',
    looksFor: 'the user guest, over a network',
    why: 'Its password is public, and it has all permissions.',
    fix: 'rabbitmqctl add_user redrive; rabbitmqctl set_permissions redrive … as described in docs/rabbitmq.md; rabbitmqctl delete_user guest',
    hits: ({ user, isLoopback }) =>
      user === 'guest' && !isLoopback
        ? [{ subject: 'user guest', found: 'used over a network' }]
        : [],
  },
]

const countOf = (nodes: number) => `${nodes} node${nodes === 1 ? '' : 's'}`
