/**
 * Loaded into the server before anything else. It resolves the attacker's names as their DNS server
 * would. `127.0.0.2` represents the internet; every other address of this machine is inside.
 */
import dns, { type LookupAddress } from 'node:dns'
import { syncBuiltinESMExports } from 'node:module'

const OUTSIDE = '127.0.0.2'
const INSIDE = '127.0.0.1'

let turns = 0
const NAMES: Readonly<Record<string, () => readonly string[]>> = {
  'outside.test': () => [OUTSIDE],
  'inside.test': () => [INSIDE],
  'mixed.test': () => [OUTSIDE, INSIDE],
  // Returns an allowed address for the check and a forbidden one for the connection.
  'turning.test': () => [turns++ % 2 === 0 ? OUTSIDE : INSIDE],
}

const { lookup } = dns
const { lookup: lookupLater } = dns.promises
type Options = { readonly all?: boolean }
type Callback = (error: Error | null, address: unknown, family?: number) => void

const addressesOf = (name: string): readonly LookupAddress[] | undefined =>
  NAMES[name]?.().map((address) => ({ address, family: 4 }))

Object.assign(dns.promises, {
  lookup: async (name: string, options: Options) =>
    addressesOf(name) ?? (await (lookupLater as (...args: unknown[]) => unknown)(name, options)),
})
Object.assign(dns, {
  lookup: (name: string, options: Options, callback: Callback) => {
    const found = addressesOf(name)
    if (found === undefined) return lookup(name, options as object, callback as never)
    const [first] = found
    if (options.all === true) return callback(null, found)
    return callback(null, first?.address, first?.family)
  },
})
syncBuiltinESMExports()
