import { delays } from './delay.suite.ts'
import { headersOnTheWire } from './headers.suite.ts'
import { amqpUrls, managementOf } from './services.ts'
import { sinks } from './sink.suite.ts'

const [url = ''] = await amqpUrls('rabbitmq')
const management = await managementOf('rabbitmq')

headersOnTheWire(url)
delays(url, management)
sinks(url)
