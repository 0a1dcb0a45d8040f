import { API_CLIENTS } from './clients/apis.ts'
import { expectSituations } from './expectations.ts'

expectSituations(API_CLIENTS)
