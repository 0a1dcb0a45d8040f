import { preparingTopics } from './declare.suite.ts'
import { sharingPartitions } from './membership.suite.ts'
import { brokersOf } from './services.ts'

const brokers = await brokersOf('kafka')

preparingTopics(brokers)
sharingPartitions(brokers)
