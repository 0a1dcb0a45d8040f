import { confirmingReplays } from './replayed.suite.ts'
import { amqpUrls } from './services.ts'
import { deadLetterSource } from './source.suite.ts'

const [url = ''] = await amqpUrls('rabbitmq')

deadLetterSource(url)
confirmingReplays(url)
