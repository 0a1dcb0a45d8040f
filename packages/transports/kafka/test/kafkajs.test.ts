import { consumingWithKafkaJs } from './kafkajs.suite.ts'
import { urlsOf } from '@redrive/dev-support'

consumingWithKafkaJs(await urlsOf('kafka'))
