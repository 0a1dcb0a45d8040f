import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { startProxy } from '../../harness/proxy.ts'
import { throughPort } from '../../postgres/database.ts'
import { type AlertCase, MINUTE } from '../alert-case.ts'
import { handled } from '../place.ts'

/** The database accepts connections and does not respond, as an overloaded one does. */
export const DATABASE_OUTAGE: AlertCase = {
  name: 'database-outage',
  story: 'the database of a handler does not respond; its breaker opens',
  alert: 'RedriveCircuitBreakerOpen',
  afterMs: MINUTE,
  async begin(place) {
    const { databaseUrl } = place.addresses
    const port = Number(new URL(databaseUrl).port)
    const proxy = await startProxy(port)
    const silent = await silentServer()
    place.onEnd(silent.end)
    place.onEnd(() => proxy.close())
    // The defaults, in the time of the drill.
    const [minOpen, maxOpen] = [place.scaledMs(1_000), place.scaledMs(30_000)]
    await place.consumer({
      databaseUrl: throughPort(databaseUrl, proxy.port),
      queryMs: place.scaledMs(30_000),
      policy: { breaker: { minOpen, maxOpen } },
    })
    place.repeat(() => place.send('query'))
    await handled(place)
    place.faultBegins()
    proxy.aimAt(silent.port)
    return async () => proxy.aimAt(port)
  },
}

/** Accepts connections and never responds. */
async function silentServer() {
  const sockets: Socket[] = []
  const server = createServer((socket) => {
    sockets.push(socket)
    // The client gives up and resets the connection.
    socket.on('error', () => undefined)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    end: async () => {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
