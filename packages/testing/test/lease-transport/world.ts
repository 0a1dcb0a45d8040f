import { randomUUID } from 'node:crypto'
import type { Transport } from '@redrive/runtime'
import {
  FakeClock,
  type SentMessage,
  type TransportFault,
  type TransportFixture,
} from '../../src/index.ts'
import { Connection } from './connection.ts'
import type { StoredMessage } from './group.ts'
import type { Mistake } from './mistakes.ts'
import { LeaseSource } from './source.ts'
import { LeaseStore } from './store.ts'
import { LeaseTransport } from './transport.ts'

/** 3 s by the virtual clock: a tenth of the deadline of a scenario. */
const LEASE_MS = 3_000

export interface LeaseWorld extends TransportFixture {
  restart(): void
}

/** Creates a new store in virtual time, whose transports make one mistake, or none. */
export function leaseWorld(mistake?: Mistake): LeaseWorld {
  const clock = new FakeClock()
  const has = (one: Mistake) => one === mistake
  const store = new LeaseStore(clock, has)
  const source = `orders-${randomUUID()}`
  const connections = new Map<Transport, Connection>()
  let isRefusing = true

  function transport(group: string, fault?: TransportFault): Transport {
    const connection = new Connection(store, clock, fault, () => isRefusing)
    const options = { source, group, leaseMs: LEASE_MS, connection, clock, has }
    const made = new LeaseTransport(options)
    connections.set(made, connection)
    return made
  }

  return {
    clock,
    transport: (fault) => transport(GROUP, fault),
    lease: { ms: LEASE_MS, transport: () => transport(GROUP) },
    otherGroup: () => ({
      transport: () => transport(OTHER),
      source: () => new LeaseSource(store, source, OTHER),
    }),
    source: () => new LeaseSource(store, source, GROUP),
    send: async (message) => sendTo(store, message),
    backlog: async () => store.backlog(GROUP),
    crash: (made) => connections.get(made)?.die(),
    stealOwnership: (made) => connections.get(made)?.loseLeases(),
    dropResponse: (made) => connections.get(made)?.dropResponse(),
    retentionMs: async () => {
      const [dead] = store.group(GROUP).dead
      return (dead?.expiresAt ?? Number.NaN) - clock.now()
    },
    heal: () => {
      isRefusing = false
    },
    restart: () => {
      store.restarts += 1
    },
    close: async () => undefined,
  }
}

const GROUP = 'billing'
const OTHER = 'shipping'

function sendTo(store: LeaseStore, message: SentMessage): string {
  const { bytes, key, headers = {}, contentType, type } = message
  const id = randomUUID()
  const keyed = key === undefined ? headers : { ...headers, 'redrive-key': key }
  const stored: StoredMessage = { id, bytes, contentType, type, headers: keyed }
  store.send(stored)
  return id
}
