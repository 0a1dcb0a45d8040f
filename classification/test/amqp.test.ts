import { AMQP_CLIENTS } from './clients/amqp.ts'
import { expectSituations } from './expectations.ts'

expectSituations(AMQP_CLIENTS)
