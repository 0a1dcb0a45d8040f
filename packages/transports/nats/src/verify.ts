import { RedriveError } from '@redrive/core'
import { AckPolicy, type ConsumerInfo, RetentionPolicy, type StreamInfo } from '@nats-io/jetstream'
import { readOwner } from './owner.ts'
import type { NewStream } from './specs.ts'
import type { Topology } from './topology.ts'

/** Rejects a stream that belongs to another consumer, or cannot store what Redrive writes to it. */
export function checkOwn(topology: Topology, { config }: StreamInfo, wanted: NewStream): void {
  const { stream, consumer, dead } = topology
  const { metadata, subjects } = config
  const name = `Stream "${config.name}"`
  const owner = readOwner(metadata)
  if (owner !== undefined && (owner.consumer !== consumer || owner.stream !== stream))
    throw mismatch(
      `${name} belongs to consumer "${owner.consumer}" of stream "${owner.stream}", and not to consumer "${consumer}" of stream "${stream}".`,
      'Pass another "prefix" for one of them.',
    )
  if (config.retention !== RetentionPolicy.Workqueue)
    throw mismatch(
      `${name} has retention "${config.retention}", and Redrive needs a work queue.`,
      'Pass another "prefix".',
    )
  const needed = wanted.subjects.filter((subject) => !dead.advisories.includes(subject))
  const absent = needed.find((subject) => !subjects.includes(subject))
  if (absent !== undefined)
    throw mismatch(`${name} does not contain the subject "${absent}".`, 'Add it to the stream.')
  if (wanted.allow_msg_schedules === true && config.allow_msg_schedules !== true)
    throw mismatch(`${name} does not allow message schedules.`, 'Delete it when it is empty.')
  if (wanted.allow_msg_ttl === true && config.allow_msg_ttl !== true)
    throw mismatch(
      `${name} does not allow a time to live of single messages.`,
      'Set "allow_msg_ttl" of the stream.',
    )
}

/** Rejects a consumer with which messages would be lost, be incomplete or arrive at the wrong time. */
export function checkConsumer({ stream, consumer }: Topology, { config }: ConsumerInfo): void {
  const name = `Consumer "${consumer}" of stream "${stream}"`
  const edit = `nats consumer edit ${stream} ${consumer}`
  if (config.deliver_subject !== undefined)
    throw mismatch(
      `${name} is a push consumer.`,
      'Use another name: Redrive then creates a pull consumer.',
    )
  if (config.ack_policy !== AckPolicy.Explicit)
    throw mismatch(
      `${name} does not acknowledge each message.`,
      'Use a consumer with AckPolicy "explicit".',
    )
  if (config.backoff !== undefined && config.backoff.length > 0)
    throw mismatch(
      `${name} has a backoff, which replaces the lease.`,
      `Remove it: ${edit} --no-backoff`,
    )
  if ((config.max_deliver ?? -1) > 0)
    throw mismatch(
      `${name} has max_deliver ${config.max_deliver}: after these deliveries, the server keeps a message in the stream and delivers it no more.`,
      `Remove the limit: ${edit} --max-deliver=-1`,
    )
  if (config.headers_only === true)
    throw mismatch(
      `${name} delivers headers without bodies.`,
      `Let it deliver the whole message: ${edit} --no-headers-only`,
    )
  if ((config.priority_groups ?? []).length > 0)
    throw mismatch(
      `${name} has priority groups, and delivers no messages to requests without a group.`,
      'Use another name: Redrive then creates a consumer without groups.',
    )
}

export function missing(what: string, fix = "Create it, or use topology: 'declare'."): never {
  throw mismatch(`NATS has no ${what}.`, fix)
}

export const mismatch = (problem: string, fix: string, cause?: unknown): RedriveError =>
  new RedriveError('TOPOLOGY_MISMATCH', `${problem} ${fix}`.trim(), { cause })
