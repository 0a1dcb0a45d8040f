import { batches } from './inbox-batch.suite.ts'
import { suitesOn } from './suites.ts'

await suitesOn('redrive_tests_inbox_batch', batches)
