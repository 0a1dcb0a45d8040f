import { RetentionPolicy } from '@nats-io/jetstream'
import { contractOf } from './contract.ts'

/**
 * Scenarios in which the retention of the stream decides where a message is: acknowledgements, hand-offs, crashes and
 * other consumers. The whole contract runs every night, in retention.proof.ts.
 */
const only = [
  'success settles',
  'enacting twice has one effect',
  'a handler that runs longer than the lease keeps its message',
  'a stale owner cannot change the message of the next owner',
  'a delivery that the broker takes back is reported as lost',
  'a hand-off whose response is lost is repeated without more copies than declared',
  'a dead letter keeps bytes, headers, key, source and history',
  'draining keeps dead letters that are not released',
  'a replay goes back to its origin as the next cycle',
  'every group gets every message and only its own failures',
  'lag counts the messages that consumers could handle now',
  'close while a handler hangs returns the message',
  'attempt history survives a process crash',
  'a crash between publish and acknowledge duplicates under the same id, and loses nothing',
  'a crash right after a hand-off began loses nothing',
  'a copy that is not confirmed keeps the original',
]

await contractOf({ retention: RetentionPolicy.Workqueue, only })
await contractOf({ retention: RetentionPolicy.Interest, only })
