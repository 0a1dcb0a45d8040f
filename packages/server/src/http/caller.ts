import type { Operation } from '@redrive/api'
import type { FastifyRequest } from 'fastify'
import type { Caller } from '../access/caller.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Name in `ROUTES`. */
    operation?: Operation
  }
}

const callers = new WeakMap<FastifyRequest, Caller>()

/** Stores the caller of a request after authentication. */
export function keepCaller(request: FastifyRequest, caller: Caller): void {
  callers.set(request, caller)
}

export const knownCaller = (request: FastifyRequest): Caller | undefined => callers.get(request)

/** Returns the caller of a request. Throws for a route without the authentication hook. */
export function callerOf(request: FastifyRequest): Caller {
  const caller = callers.get(request)
  if (caller === undefined) throw new Error('A route was reached without authentication.')
  return caller
}
