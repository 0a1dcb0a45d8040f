import { MONGO_CLIENTS } from './clients/mongodb.ts'
import { expectSituations } from './expectations.ts'

expectSituations(MONGO_CLIENTS)
