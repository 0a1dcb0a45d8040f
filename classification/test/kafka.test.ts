import { KAFKA_CLIENTS } from './clients/kafka.ts'
import { expectSituations } from './expectations.ts'

expectSituations(KAFKA_CLIENTS)
