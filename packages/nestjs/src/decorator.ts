import { SetMetadata } from '@nestjs/common'
import type { ConsumeOptions, Handler } from '@redrive/runtime'

/** The source of a handler. The function `transport` of the module gets it. */
export interface RedriveSource {
  /** Name of the queue, topic or table. */
  readonly source: string
  /** Chooses between transports, for an app with several brokers. Default: none. */
  readonly broker?: string
}

/** The options of one handler. They replace the defaults of the module. */
export interface RedriveHandlerOptions<Body = unknown, Tx = undefined>
  extends RedriveSource,
    ConsumeOptions<Body, Tx> {}

/** Decorates a method that takes the message and the context of the attempt, as a handler of `consume` does. */
export type RedriveDecorator<Body, Tx> = <T extends Handler<Body, Tx>>(
  target: object,
  key: string | symbol,
  descriptor: TypedPropertyDescriptor<T>,
) => void

export const HANDLER = 'redrive:handler'

/**
 * Makes a method of a provider the handler of a source. With a schema, the method must accept its output. Without one,
 * the method states the type of the body.
 */
export function Redrive<Body = never, Tx = undefined>(
  options: RedriveHandlerOptions<Body, Tx>,
): RedriveDecorator<Body, Tx> {
  const mark = SetMetadata(HANDLER, options)
  return (target, key, descriptor) => void mark(target, key, descriptor)
}
