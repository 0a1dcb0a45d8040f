import type { SeededRandom } from '@redrive/testing'

const HEX = '0123456789abcdef'
const BASE36 = '0123456789abcdefghijklmnopqrstuvwxyz'
const BASE62 = `${BASE36}ABCDEFGHIJKLMNOPQRSTUVWXYZ`
/** The alphabet of Crockford, as in a ULID. */
const BASE32 = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'
/**
 * The alphabet of Kubernetes pod names: no vowels. The hash of a template uses ten of these
 * characters.
 */
const POD = 'bcdfghjklmnpqrstvwxz2456789'
const TEMPLATE = '456789bcdf'

const WORDS = ['blue', 'Ana', 'size 42', 'Zoë O’Neil', 'x', '', 'N/A', '12,5', 'müller & co', 'a:b']
const PEOPLE = ['ana', 'bob.smith', 'li-wei', 'o.neil+shop', 'user17', 'k_mbappe']
const DOMAINS = ['example.com', 'mail.example.org', 'shop-7.example.co.uk']

/** Random values that differ between two failures of one kind. */
export interface Draw {
  readonly random: SeededRandom
  readonly text: (alphabet: string, length: number) => string
  /** A whole number from `low` to `high`, both included. */
  readonly int: (low: number, high: number) => number
  readonly pick: <T>(list: readonly T[]) => T
  readonly id: () => string
  readonly hex: (length: number) => string
  readonly uuid: () => string
  readonly ulid: () => string
  /** Letters of both cases and digits, as Stripe and nanoid use them. */
  readonly base62: (length: number) => string
  readonly base36: (length: number) => string
  readonly at: () => Date
  readonly ip: () => string
  readonly address: () => string
  readonly pod: (service: string) => string
  readonly host: (service: string) => string
  readonly email: () => string
  /** Text that a person or another system wrote. */
  readonly word: () => string
  /** Returns between `low` and `high` values, each made by the function. */
  readonly several: <T>(low: number, high: number, make: () => T) => T[]
}

export function drawFrom(random: SeededRandom): Draw {
  const int = (low: number, high: number) => low + random.int(high - low + 1)
  const text = (alphabet: string, length: number) =>
    Array.from({ length }, () => alphabet[random.int(alphabet.length)]).join('')
  const hex = (length: number) => text(HEX, length)
  const uuid = () => `${hex(8)}-${hex(4)}-4${hex(3)}-a${hex(3)}-${hex(12)}`
  const ip = () => `10.${int(0, 255)}.${int(0, 255)}.${int(1, 254)}`
  const ipv6 = () =>
    random.pick(['::1', `fd00::${hex(4)}:${hex(3)}`, `2001:db8:${hex(2)}::${hex(4)}`])
  const pod = (service: string) => `${service}-${text(TEMPLATE, int(8, 10))}-${text(POD, 5)}`
  return {
    random,
    text,
    int,
    hex,
    uuid,
    ip,
    pod,
    pick: (list) => random.pick(list),
    id: () => String(int(1, 10 ** int(1, 9))),
    ulid: () => `01J${text(BASE32, 23)}`,
    base62: (length) => text(BASE62, length),
    base36: (length) => text(BASE36, length),
    at: () => new Date(1_760_000_000_000 + random.int(10_000_000) * 3_001),
    address: () => `${random.chance(0.8) ? ip() : ipv6()}:${int(1024, 65_535)}`,
    host: (service) => `${pod(service)}.${service}.prod.svc.cluster.local`,
    email: () =>
      `${random.pick(PEOPLE)}${random.chance(0.5) ? int(1, 999) : ''}@${random.pick(DOMAINS)}`,
    word: () => random.pick(WORDS),
    several: (low, high, make) => Array.from({ length: int(low, high) }, make),
  }
}
