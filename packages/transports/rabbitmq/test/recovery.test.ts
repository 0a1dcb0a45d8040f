import { recovery } from './recovery.suite.ts'
import { urlsOf } from '@redrive/dev-support'
import { managementOf } from './management.ts'

const [url = ''] = await urlsOf('rabbitmq', 'amqp')

recovery(url, await managementOf('rabbitmq'))
