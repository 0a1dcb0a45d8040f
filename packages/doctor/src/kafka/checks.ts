import { type Check, nothingCheck, unreadableCheck } from '../finding.ts'
import { CLUSTER_CHECKS } from './checks-cluster.ts'
import { TOPIC_CHECKS } from './checks-topics.ts'
import type { KafkaFacts } from './facts.ts'
import { placedIn } from './look.ts'

/** All checks of Kafka. */
export const KAFKA_CHECKS: readonly Check<KafkaFacts>[] = [
  unreadableCheck('kafka'),
  nothingCheck(
    'kafka',
    'set the topics and their groups: option "sources", or kafka://HOST:9092?topic=TOPIC&group=GROUP',
    (facts) => facts.topics !== undefined && placedIn(facts).length === 0,
  ),
  ...CLUSTER_CHECKS,
  ...TOPIC_CHECKS,
]
