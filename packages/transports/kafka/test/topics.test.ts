import { preparingTopics } from './declare.suite.ts'
import { sharingPartitions } from './membership.suite.ts'
import { changingTopics } from './changing-topics.suite.ts'
import { urlsOf } from '@redrive/dev-support'

const brokers = await urlsOf('kafka')

preparingTopics(brokers)
sharingPartitions(brokers)
changingTopics(brokers)
