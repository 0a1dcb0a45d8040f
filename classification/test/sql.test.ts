import { SQL_CLIENTS } from './clients/sql.ts'
import { expectSituations } from './expectations.ts'

expectSituations(SQL_CLIENTS)
