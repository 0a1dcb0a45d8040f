import { confirmingReplays } from './replayed.suite.ts'
import { urlsOf } from '@redrive/dev-support'
import { deadLetterSource } from './source.suite.ts'

const [url = ''] = await urlsOf('rabbitmq', 'amqp')

deadLetterSource(url)
confirmingReplays(url)
