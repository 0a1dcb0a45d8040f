import { settings } from './settings.suite.ts'
import { suitesOn } from './suites.ts'

await suitesOn('redrive_tests_settings', settings)
