import { HTTP_CLIENTS } from './clients/http.ts'
import { expectSituations } from './expectations.ts'

expectSituations(HTTP_CLIENTS)
