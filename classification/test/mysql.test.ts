import { MYSQL_CLIENTS } from './clients/mysql.ts'
import { expectSituations } from './expectations.ts'

expectSituations(MYSQL_CLIENTS)
