import { ORM_CLIENTS } from './orm-clients.ts'
import { producingWith } from './produce.suite.ts'
import { suitesOn } from './suites.ts'

await suitesOn('redrive_tests_orm', (url, pool) => producingWith(ORM_CLIENTS, url, pool))
