import { urlsOf } from '@redrive/dev-support'
import { handlingLargeRecords } from './large-records.suite.ts'

handlingLargeRecords(await urlsOf('kafka'))
