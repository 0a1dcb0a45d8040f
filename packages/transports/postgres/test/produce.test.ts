import { producing } from './produce.suite.ts'
import { schema } from './schema.suite.ts'
import { schemaNames } from './schema-name.suite.ts'
import { sinks } from './sink.suite.ts'
import { suitesOn } from './suites.ts'
import { waking } from './wake.suite.ts'

await suitesOn('redrive_tests_produce', schema, schemaNames, producing, waking, sinks)
