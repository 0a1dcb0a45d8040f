import { confirming } from './confirm.suite.ts'
import { inboxes } from './inbox.suite.ts'
import { maintaining } from './maintain.suite.ts'
import { replaying } from './replay.suite.ts'
import { suitesOn } from './suites.ts'

await suitesOn('redrive_tests_replay', replaying, confirming, inboxes, maintaining)
