import { type Check, nothingCheck, unreadableCheck } from '../finding.ts'
import { STREAM_CHECKS } from './checks-streams.ts'
import { SERVER_CHECKS } from './checks-server.ts'
import type { NatsFacts } from './facts.ts'
import { placedIn } from './look.ts'

/** All checks of NATS JetStream. */
export const NATS_CHECKS: readonly Check<NatsFacts>[] = [
  unreadableCheck('nats'),
  nothingCheck(
    'nats',
    'set the streams and their consumers: option "sources", or nats://HOST:4222?stream=STREAM&consumer=CONSUMER',
    (facts) => facts.streams !== undefined && placedIn(facts).length === 0,
  ),
  ...SERVER_CHECKS,
  ...STREAM_CHECKS,
]
