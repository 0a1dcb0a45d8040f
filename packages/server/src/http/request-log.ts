import { type FastifyRequest, LogController } from 'fastify'

/** The error of a client that disconnected. */
const CLIENT_GONE = 'ERR_STREAM_PREMATURE_CLOSE'

/**
 * Logs only responses that were cut off by an error. A hook logs one line per request instead of the lines of Fastify,
 * which contain the URL with keys and message texts.
 */
export class RequestLog extends LogController {
  constructor() {
    super({ disableRequestLogging: true, requestIdLogLabel: 'requestId' })
  }

  override streamError(error: Error & { readonly code?: string }, request: FastifyRequest): void {
    if (error.code === CLIENT_GONE) return
    const { operation } = request.routeOptions.config
    request.log.warn({ err: error, operation }, 'A response was cut off by an error')
  }
}
