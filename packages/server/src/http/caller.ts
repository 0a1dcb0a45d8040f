import type { Operation } from '@redrive/api'
import type { FastifyRequest } from 'fastify'
import type { Caller } from '../access/caller.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Of the table of routes. */
    operation?: Operation
  }
}

const callers = new WeakMap<FastifyRequest, Caller>()

/** Remembers who asks, once it is known. */
export function keepCaller(request: FastifyRequest, caller: Caller): void {
  callers.set(request, caller)
}

export const knownCaller = (request: FastifyRequest): Caller | undefined => callers.get(request)

/** A route that has nothing in front of it is a fault, and not an open door. */
export function callerOf(request: FastifyRequest): Caller {
  const caller = callers.get(request)
  if (caller === undefined) throw new Error('A route was reached without authentication.')
  return caller
}
