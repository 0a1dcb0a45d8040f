import { confirmingReplays } from './replayed.suite.ts'
import { urlsOf } from '@redrive/dev-support'
import { drainingDeadLetters } from './source.suite.ts'

const brokers = await urlsOf('kafka')

drainingDeadLetters(brokers)
confirmingReplays(brokers)
