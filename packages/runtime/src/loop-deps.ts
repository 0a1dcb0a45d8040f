import type { Delivery } from '@redrive/core'
import type { GuardStateDeps } from './guard-state.ts'
import type { Call } from './invoke.ts'
import type { Transport } from './ports/transport.ts'

export interface LoopDeps<D extends Delivery> extends Omit<GuardStateDeps, 'source'> {
  readonly transport: Transport<D>
  readonly call: Call
}
