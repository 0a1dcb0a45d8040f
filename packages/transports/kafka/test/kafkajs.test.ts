import { consumingWithKafkaJs } from './kafkajs.suite.ts'
import { brokersOf } from './services.ts'

consumingWithKafkaJs(await brokersOf('kafka'))
