import type { Socket } from 'node:net'
import type { fetchV17 } from '@platformatic/kafka'
import type { Failpoint, When } from './consumer-options.ts'
import { nameOfRequest, type OnRequest, type Request } from './requests.ts'

/**
 * Kills the process at one request. It is between the client library and the socket, so the
 * transport runs unchanged.
 */
export function dyingAt(failpoint: Failpoint, die: (where: string) => never): OnRequest {
  const { request: meant, when, topic } = failpoint
  const at = (here: When) => {
    if (here === when) die(`${meant} ${here}`)
  }
  /** Whether the selected copy is stored; later requests belong to it. */
  let hasBegun = topic === undefined
  return (request) => {
    const name = nameOfRequest(request.apiKey)
    if (name === 'produce' && topic !== undefined && isTo(request, topic)) hasBegun = true
    if (name !== meant || !hasBegun) return request.send()
    if (name === 'fetch') return dieAtRecords(request, at)
    at('before')
    const { socket } = request.connection
    const sentBefore = socket.bytesWritten
    request.send((error, answer) => {
      // An error is not the selected response, and the caller retries.
      if (error !== null) return request.callback(error, answer)
      // The transport must not get the response. The process dies as soon as the request is sent.
      if (when === 'written') return
      at('answered')
      request.callback(error, answer)
      at('received')
    })
    if (when === 'written') whenSent(socket, sentBefore, () => at('written'))
  }
}

const isTo = (request: Request, topic: string) => request.payload().includes(topic)

/** An empty fetch leaves nothing half done, so this waits for a fetch with records. */
function dieAtRecords(request: Request, at: (here: When) => void): void {
  at('before')
  request.send((error, answer) => {
    const isMeant = error === null && hasRecords(answer as fetchV17.FetchResponse)
    if (isMeant) at('answered')
    request.callback(error, answer)
    if (isMeant) at('received')
  })
}

const hasRecords = ({ responses }: fetchV17.FetchResponse) =>
  responses.some(({ partitions }) => partitions.some(({ records }) => (records ?? []).length > 0))

/**
 * Calls back when the operating system has accepted the bytes. They then arrive even if this
 * process dies.
 */
function whenSent(socket: Socket, sentBefore: number, done: () => void): void {
  if (socket.bytesWritten > sentBefore && socket.writableLength === 0) done()
  else setImmediate(() => whenSent(socket, sentBefore, done))
}
