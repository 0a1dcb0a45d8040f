import type { Mistake } from './mistakes.ts'

/** The scenario that must find a mistake, and words of its failure that name the cause. */
export interface Kill {
  readonly scenario: string
  readonly cause: RegExp
  /** Other scenarios that must find it too. */
  readonly also?: readonly string[]
}

export const KILLS: Readonly<Record<Mistake, Kill>> = {
  owner_unchecked: {
    scenario: 'a stale owner cannot change the message of the next owner',
    cause: /^a stale owner's settle returns lost.*last enactment: settle -> done: settled/s,
  },
  lease_not_renewed: {
    scenario: 'a handler that runs longer than the lease keeps its message',
    cause: /^second deliveries while the owner lives: the lease of 3000 ms ended/,
  },
  loss_not_reported: {
    scenario: 'a delivery that the broker takes back is reported as lost',
    cause: /^receiver\.lost\(\) is called for the delivery that the broker took back/,
    also: [
      'the signal of a handler fires when the broker takes its delivery back, and only the next owner settles it',
      'the next owner runs a message once and in its order, also while the last owner runs it for 20 s',
    ],
  },
  pause_does_not_wait: {
    scenario: 'a pause waits for the read in progress',
    cause: /^deliveries after pause\(\) resolved: it did not wait for the read/,
  },
  stack_dropped: {
    scenario: 'a dead letter keeps the stack of its failure',
    cause: /^the stack of the drained dead letter/,
  },
  handler_dropped: {
    scenario: 'a dead letter names its handler',
    cause: /^the handler of the drained dead letter/,
  },
  drain_not_exclusive: {
    scenario: 'two control planes drain each dead letter once',
    cause: /is released by two control planes/,
  },
  retry_on_shared_stream: {
    scenario: 'every group gets every message and only its own failures',
    cause: /^a retry of one group reached the other/,
  },
  acknowledged_before_copy: {
    scenario:
      'a crash between publish and acknowledge duplicates under the same id, and loses nothing',
    cause: /neither in the source nor in the dead-letter queue/,
  },
  refused_copy_counted_as_done: {
    scenario: 'a copy that is not confirmed keeps the original',
    cause: /^a copy that the broker rejected is unknown.*deadLetter -> done: dead_letter/s,
  },
  retry_early: {
    scenario: 'a retry arrives not before its time',
    cause: /^a retry in 300 ms came after \d+ ms/,
  },
  replay_not_deduplicated: {
    scenario: 'a replay published twice takes effect once',
    cause: /^a replay published twice is delivered 2 times, at most 1/,
  },
  replay_on_shared_stream: {
    scenario: 'a replay reaches only the group that gave up the message',
    cause: /^a replay of one group reached the other/,
  },
  group_shares_cursor: {
    scenario: 'every group gets every message and only its own failures',
    cause: /^both groups get the message: the (?:first|second) has none/,
  },
  retention_ignored: {
    scenario: 'the retention of dead letters reaches the broker',
    cause: /open\(\) requested 3600000 ms, the broker applies Infinity ms/,
  },
  confirmation_not_stored: {
    scenario: 'a handled replay is confirmed once, a plain message never',
    cause: /^1 replays are confirmed/,
  },
  claim_script_fails: {
    scenario: 'success settles',
    cause: /^delivery number 1 arrives .*connection_lost: WRONGTYPE Operation against a key/,
  },
  repeated_copy: {
    scenario: 'a hand-off whose response is lost is repeated without more copies than declared',
    cause: /^2 dead letters of one message, at most 1/,
  },
  lag_counts_delayed: {
    scenario: 'lag counts the messages that consumers could handle now',
    cause: /^lag\(\) with a delayed retry and a dead letter/,
  },
}
