import { REDIS_CLIENTS } from './clients/redis.ts'
import { expectSituations } from './expectations.ts'

expectSituations(REDIS_CLIENTS)
