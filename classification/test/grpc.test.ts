import { GRPC_CLIENTS } from './clients/grpc.ts'
import { expectSituations } from './expectations.ts'

expectSituations(GRPC_CLIENTS)
