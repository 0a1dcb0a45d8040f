import { adversary } from './adversary.suite.ts'
import { amqpUrls } from './services.ts'

const [url = ''] = await amqpUrls('rabbitmq')

adversary(url)
