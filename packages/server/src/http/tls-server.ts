import { createServer } from 'node:https'
import type { FastifyServerFactory } from 'fastify'
import { ARRIVAL_CHECK_MS, ARRIVAL_MS, HEADER_BYTES } from './limits.ts'

/** 72 s: Fastify's value for servers that it creates. It is longer than the timeouts of common proxies. */
const KEEP_ALIVE_MS = 72_000

/** Creates https servers with the limits of the plain one. A handshake must end in the time of a request. */
export const tlsServerFactory =
  (pair: { readonly cert: string; readonly key: string }): FastifyServerFactory =>
  (handler) =>
    createServer(
      {
        ...pair,
        maxHeaderSize: HEADER_BYTES,
        headersTimeout: ARRIVAL_MS,
        requestTimeout: ARRIVAL_MS,
        connectionsCheckingInterval: ARRIVAL_CHECK_MS,
        handshakeTimeout: ARRIVAL_MS,
        keepAliveTimeout: KEEP_ALIVE_MS,
      },
      handler,
    )
