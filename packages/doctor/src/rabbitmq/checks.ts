import { type Check, nothingCheck, unreadableCheck } from '../finding.ts'
import { BROKER_CHECKS } from './checks-broker.ts'
import { MEMBER_CHECKS } from './checks-members.ts'
import { QUEUE_CHECKS } from './checks-queues.ts'
import { ROUTE_CHECKS } from './checks-routes.ts'
import { SETTING_CHECKS } from './checks-settings.ts'
import type { RabbitmqFacts } from './facts.ts'
import { placedIn } from './roles.ts'

/** All checks of RabbitMQ. */
export const RABBITMQ_CHECKS: readonly Check<RabbitmqFacts>[] = [
  unreadableCheck('rabbitmq'),
  nothingCheck(
    'rabbitmq',
    'set the queues and their vhost: option "queues", or http://HOST:15672?vhost=VHOST&queue=QUEUE',
    (facts) => facts.queues !== undefined && placedIn(facts).length === 0,
  ),
  ...BROKER_CHECKS,
  ...QUEUE_CHECKS,
  ...SETTING_CHECKS,
  ...MEMBER_CHECKS,
  ...ROUTE_CHECKS,
]
