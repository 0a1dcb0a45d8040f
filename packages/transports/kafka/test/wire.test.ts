import { headersOnTheWire } from './headers.suite.ts'
import { publishingCopies } from './publish.suite.ts'
import { brokersOf } from './services.ts'
import { sinks } from './sink.suite.ts'

const brokers = await brokersOf('kafka')

headersOnTheWire(brokers)
publishingCopies(brokers)
sinks(brokers)
