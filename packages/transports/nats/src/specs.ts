import {
  AckPolicy,
  type ConsumerConfig,
  DiscardPolicy,
  RetentionPolicy,
  StorageType,
  type StreamConfig,
} from '@nats-io/jetstream'
import type { ResolvedOptions } from './options.ts'
import { ownerOf } from './owner.ts'
import { DUPLICATE_WINDOW_MS, type Topology } from './topology.ts'

export type NewStream = Partial<StreamConfig> & Pick<StreamConfig, 'name' | 'subjects'>
export type NewConsumer = Partial<ConsumerConfig> & { readonly durable_name: string }

const NANOS_PER_MS = 1_000_000
/** 20,000 unfinished messages of all processes together. The default of the server, 1,000, can stop a large group of consumers. */
const MAX_ACK_PENDING = 20_000
/** 30 s: the dead letters of a crashed control plane are available again soon. */
export const DRAIN_LEASE_MS = 30_000

const WORK_QUEUE = {
  retention: RetentionPolicy.Workqueue,
  storage: StorageType.File,
  duplicate_window: DUPLICATE_WINDOW_MS * NANOS_PER_MS,
} as const

/** Returns a new stream for producers. */
export const workQueueOf = (name: string, subjects: readonly string[]): NewStream => ({
  name,
  subjects: [...subjects],
  ...WORK_QUEUE,
})

/** Returns the two streams of Redrive for a consumer. */
export function streamsOf(
  topology: Topology,
  replicas: number,
): { readonly retry: NewStream; readonly deadLetters: NewStream } {
  const { retry, dead } = topology
  const shared = { ...WORK_QUEUE, num_replicas: replicas, metadata: ownerOf(topology) }
  return {
    retry: {
      ...shared,
      name: retry.stream,
      subjects: [retry.subject, `${retry.delayed}.>`],
      allow_msg_schedules: true,
      // The server removes a schedule with a roll-up, and accepts schedules only in streams that discard old messages. The
      // stream has no limits, so it discards nothing.
      allow_rollup_hdrs: true,
      discard: DiscardPolicy.Old,
    },
    deadLetters: {
      ...shared,
      name: dead.stream,
      subjects: [dead.deadLetters, dead.quarantine, dead.confirmations, ...dead.advisories],
      allow_msg_ttl: true,
      discard: DiscardPolicy.New,
    },
  }
}

export const consumerOf = ({ topology, filterSubjects, leaseMs }: ResolvedOptions): NewConsumer =>
  workerOf(topology.consumer, filterSubjects ?? [], leaseMs)

export const retryConsumerOf = ({ topology: { retry }, leaseMs }: ResolvedOptions): NewConsumer =>
  workerOf(retry.consumer, [retry.subject], leaseMs)

export const workerOf = (
  name: string,
  subjects: readonly string[],
  leaseMs: number,
): NewConsumer => ({
  durable_name: name,
  ack_policy: AckPolicy.Explicit,
  ack_wait: leaseMs * NANOS_PER_MS,
  // Redrive counts deliveries itself. With a limit, the server would leave messages in the stream without a trace.
  max_deliver: -1,
  max_ack_pending: MAX_ACK_PENDING,
  ...(subjects.length === 0 ? {} : { filter_subjects: [...subjects] }),
})
