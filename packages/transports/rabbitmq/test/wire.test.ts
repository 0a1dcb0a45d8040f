import { delays } from './delay.suite.ts'
import { headersOnTheWire } from './headers.suite.ts'
import { urlsOf } from '@redrive/dev-support'
import { managementOf } from './management.ts'
import { sinks } from './sink.suite.ts'

const [url = ''] = await urlsOf('rabbitmq', 'amqp')
const management = await managementOf('rabbitmq')

headersOnTheWire(url)
delays(url, management)
sinks(url)
