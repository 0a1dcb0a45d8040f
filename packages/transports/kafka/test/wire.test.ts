import { headersOnTheWire } from './headers.suite.ts'
import { publishingCopies } from './publish.suite.ts'
import { urlsOf } from '@redrive/dev-support'
import { sinks } from './sink.suite.ts'

const brokers = await urlsOf('kafka')

headersOnTheWire(brokers)
publishingCopies(brokers)
sinks(brokers)
