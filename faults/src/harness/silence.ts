import type { Evidence, Violation } from '../evidence/evidence.ts'
import { type Mode, type Proxy, startProxy } from './proxy.ts'
import { lasting } from './wait.ts'
import type { World } from './world.ts'

/** First the server gets the requests and its responses are lost, then it gets nothing. */
const MODES: readonly Mode[] = ['deaf-client', 'black-hole']

/** Starts a proxy to a server until the end of the scenario, and returns it with its address. */
export async function proxyTo(
  world: World,
  address: string,
): Promise<{ readonly proxy: Proxy; readonly url: URL }> {
  const url = new URL(address)
  const proxy = await startProxy(Number(url.port))
  world.atEnd(() => proxy.close())
  url.port = String(proxy.port)
  return { proxy, url }
}

/** Silences the connections in both ways in turn, each time for this long, and then breaks them. */
export async function silenceInTurn(world: World, proxy: Proxy, silentMs: number): Promise<void> {
  for (let time = 0; time < (world.scale === 'full' ? 6 : 2); time++) {
    await lasting(1_000)
    const mode = MODES[time % MODES.length] as Mode
    const end = world.fault(`connections are a ${mode}`)
    const silent = proxy.connections()
    for (const connection of silent) connection.mode = mode
    await lasting(silentMs)
    for (const connection of silent) connection.destroy()
    end()
  }
}

/** Checks that an outcome was unknown; otherwise the scenario proves nothing. */
export function checkUnknown({ entries }: Evidence): readonly Violation[] {
  return entries.some((entry) => entry.what === 'event' && entry.type === 'unknown')
    ? []
    : [{ rule: 'scenario', text: 'no outcome was unknown' }]
}
