import { adversary } from './adversary.suite.ts'
import { urlsOf } from '@redrive/dev-support'

const [url = ''] = await urlsOf('rabbitmq', 'amqp')

adversary(url)
