import { lookup as systemLookup, type LookupAddress } from 'node:dns'
import { BlockList, isIP, type LookupFunction } from 'node:net'
import { refused } from './errors.ts'

/**
 * Addresses of this machine, of private networks, or without a host. A person who can choose the address
 * of a webhook could otherwise read and change data that only the internal network can reach.
 * https://www.iana.org/assignments/iana-ipv4-special-registry
 */
const REFUSED_V4: readonly string[] = [
  '0.0.0.0/8', // this host
  '10.0.0.0/8', // private
  '100.64.0.0/10', // shared by carriers; also the metadata service of Alibaba
  '127.0.0.0/8', // loopback
  '168.63.129.16/32', // the platform's own service in every network of Azure
  '169.254.0.0/16', // link-local, with the metadata service of most clouds
  '172.16.0.0/12', // private
  '192.0.0.0/24', // protocol assignments; also the metadata service of Oracle
  '192.0.2.0/24', // documentation
  '192.88.99.0/24', // relays of 6to4
  '192.168.0.0/16', // private
  '198.18.0.0/15', // benchmarks
  '198.51.100.0/24', // documentation
  '203.0.113.0/24', // documentation
  '224.0.0.0/4', // multicast
  '240.0.0.0/4', // reserved, and broadcast
]

/**
 * In IPv6 only 2000::/3 is public, so everything else is rejected without a list: ::1, IPv4 in IPv6,
 * NAT64, unique local, link-local, multicast. The ranges below are rejected within it.
 * https://www.iana.org/assignments/iana-ipv6-special-registry
 */
const WORLD_V6 = '2000::/3'
const REFUSED_V6: readonly string[] = [
  '2001::/23', // protocol assignments, with Teredo, which carries an IPv4 address
  '2001:db8::/32', // documentation
  '2002::/16', // 6to4, which carries an IPv4 address
  '3fff::/20', // documentation
]

type Family = 'ipv4' | 'ipv6'

/** One list per family: a rule for one must not match an address of the other by conversion. */
class Ranges {
  readonly #lists = { ipv4: new BlockList(), ipv6: new BlockList() }

  constructor(ranges: readonly string[]) {
    for (const range of ranges) this.#add(range)
  }

  #add(range: string): void {
    const [address = '', bits] = range.split('/')
    const family = familyOf(address)
    const longest = family === 'ipv4' ? 32 : 128
    this.#lists[family].addSubnet(address, bits === undefined ? longest : Number(bits), family)
  }

  has(address: string): boolean {
    const family = familyOf(address)
    return this.#lists[family].check(address, family)
  }
}

const familyOf = (address: string): Family => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

const refusedRanges = new Ranges([...REFUSED_V4, ...REFUSED_V6])
const world = new Ranges(['0.0.0.0/0', WORLD_V6])

/** Returns true for a public address. */
export function isPublic(address: string): boolean {
  return world.has(address) && !refusedRanges.has(address)
}

/** Returns the problem of an allow-list entry; undefined for a name, an address or a range. */
export function allowProblem(entry: string): string | undefined {
  const [address = '', bits, ...rest] = entry.split('/')
  const family = isIP(address)
  if (family === 0) {
    // Only digits and dots: an address with a mistake, not a name.
    const isName = /^[\w-]+(\.[\w-]+)*$/.test(entry) && !/^[\d.]+$/.test(entry)
    return isName ? undefined : `allow: "${entry}" is not a host name, address or range`
  }
  const longest = family === 4 ? 32 : 128
  const isRange = bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= longest)
  return isRange && rest.length === 0 ? undefined : `allow: "${entry}" is not an address range`
}

/** Decides which addresses connections may use. */
export class AddressGuard {
  readonly #names: ReadonlySet<string>
  readonly #ranges: Ranges
  readonly #resolve: LookupFunction

  constructor(allow: readonly string[], resolve: LookupFunction = systemLookup as LookupFunction) {
    const isRange = (entry: string) => isIP(entry.split('/')[0] ?? '') !== 0
    this.#names = new Set(allow.filter((entry) => !isRange(entry)).map(canonical))
    this.#ranges = new Ranges(allow.filter(isRange))
    this.#resolve = resolve
  }

  /** Returns whether a connection to this host is allowed, as far as known without a lookup. */
  allowsHost(host: string): boolean {
    return isIP(host) === 0 || this.#allows(host)
  }

  #allows(address: string): boolean {
    return isPublic(address) || this.#ranges.has(address)
  }

  /**
   * A `lookup` function for connections that returns only allowed addresses. The connection uses exactly this
   * result without a second lookup, so a name cannot change its address after the check.
   */
  readonly lookup: LookupFunction = (host, options, callback) => {
    this.#resolve(host, { ...options, all: true }, (error, found) => {
      if (error !== null) return callback(error, [])
      const isNamed = this.#names.has(canonical(host))
      const fit = listed(found).filter(({ address }) => isNamed || this.#allows(address))
      const [first] = fit
      if (first === undefined) return callback(notAllowed(host), [])
      if (options.all === true) callback(null, fit)
      else callback(null, first.address, first.family)
    })
  }
}

/** Converts the result of a resolver that does not support `all` and returns one address. */
function listed(found: string | readonly LookupAddress[]): readonly LookupAddress[] {
  return typeof found === 'string' ? [{ address: found, family: isIP(found) }] : found
}

/** Normalises a name like a resolver: ignores case and a final dot. */
const canonical = (host: string) => host.toLowerCase().replace(/\.$/, '')

/** Creates the error. It omits the address, which would show the internal network to the person who chose the name. */
export function notAllowed(host: string): Error {
  return refused(
    `Host "${host}" resolves to an address that is not public. Add it to "allow" if this is intended.`,
  )
}
