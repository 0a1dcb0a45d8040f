import type { Check } from '../finding.ts'
import type { RabbitmqFacts } from './facts.ts'
import { isBefore } from './look.ts'
import { isQueue } from './roles.ts'

/** Three nodes are the fewest of which one may be lost. */
const ENOUGH_NODES = 3

/** The broker itself. */
export const BROKER_CHECKS: readonly Check<RabbitmqFacts>[] = [
  {
    id: 'rabbitmq.version',
    severity: 'loss',
    caps: 'C',
    looksFor: 'RabbitMQ before 3.10',
    why: 'It cannot dead-letter at least once: a retry whose wait is over may be lost on its way back.',
    fix: 'use RabbitMQ 3.10 or later',
    hits: (facts) =>
      isBefore(facts, 3, 10) ? [{ subject: 'version', found: `RabbitMQ ${facts.version}` }] : [],
  },
  {
    id: 'rabbitmq.one-node',
    severity: 'loss',
    caps: 'B',
    looksFor: 'a broker with fewer than three nodes',
    why: 'When the disk of the only node is lost, every message is. Two are no better: without one of them the other has no majority.',
    fix: 'join two more nodes: rabbitmqctl join_cluster {node}, on each of them; then rabbitmq-queues grow',
    hits: ({ nodes = [] }) =>
      nodes.length > 0 && nodes.length < ENOUGH_NODES
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
    why: 'The last one adds no safety, and a cut in the middle leaves no majority on either side.',
    fix: 'use three, five or seven nodes',
    hits: ({ nodes = [] }) =>
      nodes.length > ENOUGH_NODES && nodes.length % 2 === 0
        ? [{ subject: 'cluster', found: countOf(nodes.length) }]
        : [],
  },
  {
    id: 'rabbitmq.node-down',
    severity: 'delay',
    caps: 'A',
    looksFor: 'a node that does not run',
    why: 'Fewer further losses are survived, and queues without a majority stand still.',
    fix: 'start it; or, when it is gone for good: rabbitmqctl forget_cluster_node {subject}',
    hits: ({ nodes = [] }) =>
      nodes
        .filter(({ isRunning }) => !isRunning)
        .map(({ name }) => ({ subject: name, found: 'not running' })),
  },
  {
    id: 'rabbitmq.partitioned',
    severity: 'loss',
    caps: 'C',
    looksFor: 'nodes that are cut off from each other',
    why: 'Both sides went on by themselves. When they are joined, what one of them has accepted since in classic queues is thrown away.',
    fix: 'restart the side that is to give way; then set cluster_partition_handling = pause_minority',
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
    why: 'The whole broker takes no messages while one node is short: retries and dead letters wait in hand.',
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
    looksFor: 'a source queue that was asked for and is not there',
    why: 'Nobody can consume it, and what is published to it without mandatory is lost.',
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
    why: 'Everybody knows its password, and it may do everything.',
    fix: 'rabbitmqctl add_user redrive; rabbitmqctl set_permissions redrive … as docs/rabbitmq.md says; rabbitmqctl delete_user guest',
    hits: ({ user, isLoopback }) =>
      user === 'guest' && !isLoopback
        ? [{ subject: 'user guest', found: 'used over a network' }]
        : [],
  },
]

const countOf = (nodes: number) => `${nodes} node${nodes === 1 ? '' : 's'}`
