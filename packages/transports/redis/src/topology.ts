/** The keys of a stream and a consumer group. All of them are in one slot of a cluster, so one script can use them. */
export interface Topology {
  readonly stream: string
  readonly group: string
  /** Stream of messages that only this group gets: due retries, returned messages and replays. */
  readonly own: string
  /** Sorted set of retries that wait for their time. */
  readonly retry: string
  /** Stream of dead letters and quarantine. */
  readonly deadLetters: string
  /** Stream of the confirmations of replays. */
  readonly replayed: string
  /** Sorted set of the ids of replays, so that a replay that is published again has no effect. */
  readonly replays: string
}

/** Returns the keys of a stream and a group. */
export function topologyOf(stream: string, group: string): Topology {
  // The text in braces selects the slot. Without braces, Redis uses the whole name.
  const tagged = /\{[^}]+\}/.test(stream) ? stream : `{${stream}}`
  const key = (name: string) => `${tagged}:${group}:${name}`
  return {
    stream,
    group,
    own: key('own'),
    retry: key('retry'),
    deadLetters: key('dlq'),
    replayed: key('replayed'),
    replays: key('replays'),
  }
}

/** The group of all control planes on the streams of dead letters and confirmations. */
export const CONTROL_PLANE = 'redrive'
