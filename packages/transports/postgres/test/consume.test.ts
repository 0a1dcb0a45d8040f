import { floors } from './floor.suite.ts'
import { lanes } from './lane.suite.ts'
import { leases } from './lease.suite.ts'
import { suitesOn } from './suites.ts'
import { troubles } from './trouble.suite.ts'

await suitesOn('redrive_tests_consume', (_, pool) => leases(pool), troubles, floors, lanes)
