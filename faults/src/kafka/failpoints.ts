import type { Socket } from 'node:net'
import type { fetchV17 } from '@platformatic/kafka'
import type { Failpoint, When } from './consumer-options.ts'
import { nameOfRequest, type OnRequest, type Request } from './requests.ts'

/**
 * Kills the process at one request. It sits between the client library and the socket, so that the
 * transport runs as it is.
 */
export function dyingAt(failpoint: Failpoint, die: (where: string) => never): OnRequest {
  const { request: meant, when, topic } = failpoint
  const at = (here: When) => {
    if (here === when) die(`${meant} ${here}`)
  }
  /** The copy that is meant has been stored: what follows belongs to it. */
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
      // An error is none of what is meant, and whoever asked will ask again.
      if (error !== null) return request.callback(error, answer)
      // The transport must not hear of it: the process dies as soon as the request is on its way.
      if (when === 'written') return
      at('answered')
      request.callback(error, answer)
      at('told')
    })
    if (when === 'written') whenSent(socket, sentBefore, () => at('written'))
  }
}

const isTo = (request: Request, topic: string) => request.payload().includes(topic)

/** A fetch that finds nothing leaves nothing half done: the one that is meant brings something. */
function dieAtRecords(request: Request, at: (here: When) => void): void {
  at('before')
  request.send((error, answer) => {
    const isMeant = error === null && hasRecords(answer as fetchV17.FetchResponse)
    if (isMeant) at('answered')
    request.callback(error, answer)
    if (isMeant) at('told')
  })
}

const hasRecords = ({ responses }: fetchV17.FetchResponse) =>
  responses.some(({ partitions }) => partitions.some(({ records }) => (records ?? []).length > 0))

/** Calls back when the system has taken what was written: it then arrives even if we die. */
function whenSent(socket: Socket, sentBefore: number, done: () => void): void {
  if (socket.bytesWritten > sentBefore && socket.writableLength === 0) done()
  else setImmediate(() => whenSent(socket, sentBefore, done))
}
