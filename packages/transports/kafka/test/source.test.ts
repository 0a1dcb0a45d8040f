import { confirmingReplays } from './replayed.suite.ts'
import { brokersOf } from './services.ts'
import { drainingDeadLetters } from './source.suite.ts'

const brokers = await brokersOf('kafka')

drainingDeadLetters(brokers)
confirmingReplays(brokers)
