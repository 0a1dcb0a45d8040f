import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'

interface KeyValue {
  readonly key: string
  readonly value: {
    readonly stringValue?: string
    readonly intValue?: number | string
    readonly boolValue?: boolean
  }
}

/** A span in the JSON encoding of OTLP. */
export interface OtlpSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly kind: number
  readonly startTimeUnixNano: string
  readonly attributes?: readonly KeyValue[]
  readonly links?: readonly {
    readonly traceId: string
    readonly spanId: string
    readonly attributes?: readonly KeyValue[]
  }[]
  readonly status?: { readonly code?: number }
}

interface ExportRequest {
  readonly resourceSpans: readonly {
    readonly scopeSpans: readonly { readonly spans: readonly OtlpSpan[] }[]
  }[]
}

export interface OtlpReceiver {
  readonly url: string
  /** Returns the received spans in the order of their starts. */
  spans(): readonly OtlpSpan[]
  close(): void
}

/** Starts a receiver of traces: OTLP over HTTP, encoded as JSON. It rejects everything else, as a collector does. */
export async function receiveSpans(): Promise<OtlpReceiver> {
  const received: OtlpSpan[] = []
  const server = createServer((request, response) => {
    void statusOf(request, received).then((status) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end('{}'),
    )
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: () =>
      received.toSorted((one, other) =>
        Number(BigInt(one.startTimeUnixNano) - BigInt(other.startTimeUnixNano)),
      ),
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}

async function statusOf(request: IncomingMessage, received: OtlpSpan[]): Promise<number> {
  if (request.method !== 'POST' || request.url !== '/v1/traces') return 404
  if (request.headers['content-type'] !== 'application/json') return 415
  const { resourceSpans } = (await json(request)) as ExportRequest
  for (const { scopeSpans } of resourceSpans) {
    for (const { spans } of scopeSpans) received.push(...spans)
  }
  return 200
}

/** Returns the attributes as an object. */
export const attributesOf = (
  one: { readonly attributes?: readonly KeyValue[] } | undefined,
): Readonly<Record<string, unknown>> =>
  Object.fromEntries(
    (one?.attributes ?? []).map(({ key, value: { stringValue, intValue, boolValue } }) => [
      key,
      stringValue ?? (intValue === undefined ? boolValue : Number(intValue)),
    ]),
  )

/** Returns the links of a span with their kind. */
export const linksOf = ({ links = [] }: OtlpSpan): readonly object[] =>
  links.map(({ traceId, spanId, ...link }) => ({
    kind: attributesOf(link)['redrive.link'],
    traceId,
    spanId,
  }))
