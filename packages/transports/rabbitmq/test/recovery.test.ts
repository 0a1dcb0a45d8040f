import { recovery } from './recovery.suite.ts'
import { amqpUrls, managementOf } from './services.ts'

const [url = ''] = await amqpUrls('rabbitmq')

recovery(url, await managementOf('rabbitmq'))
