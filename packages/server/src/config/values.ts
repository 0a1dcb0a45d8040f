import { isIP } from 'node:net'
import { type Duration, parseDuration } from '@redrive/core'
import { z } from 'zod'
import { Secret } from './secret.ts'

/** The kinds of values that a config is made of. Each says what it expects, and never shows a secret. */

/** Text that has something in it. */
export const text = (most = 1_000) =>
  z
    .string({ error: (issue) => expected('text', issue.input) })
    .min(1, { error: 'expected text, got nothing' })
    .max(most, { error: `expected at most ${most} characters` })

/** A number, or text that is one: placeholders always give text. */
export const whole = (least: number, most: number) => {
  const error = `expected a whole number from ${least} to ${most}`
  return z
    .union(
      [
        z.int({ error }).min(least, { error }).max(most, { error }),
        z.string().regex(/^(\d+|.*\$\{.*)$/),
      ],
      { error },
    )
    .transform(Number)
    .refine((value) => Number.isSafeInteger(value) && value >= least && value <= most, { error })
}

/** A share from 0 to 1. */
export const share = () =>
  z.number({ error: 'expected 0 to 1' }).min(0, 'expected 0 to 1').max(1, 'expected 0 to 1')

export const flag = () =>
  z
    .union([z.boolean(), z.enum(['true', 'false'])], { error: 'expected true or false' })
    .transform((value) => value === true || value === 'true')

/** As everywhere in Redrive: `'250ms'`, `'5s'`, `'2m'`, `'1h'`, `'7d'`. */
export const duration = (least: Duration, most: Duration) => {
  const [leastMs = 0, mostMs = 0] = [parseDuration(least), parseDuration(most)]
  const error = `expected a duration from '${least}' to '${most}'`
  return z
    .union([z.string(), z.number()], { error })
    .refine((value) => isWithin(parseDuration(value), leastMs, mostMs), { error })
    .transform((value) => value as Duration)
}

const isWithin = (ms: number | undefined, leastMs: number, mostMs: number) =>
  ms !== undefined && ms >= leastMs && ms <= mostMs

/** Of a duration that was checked. */
export const msOf = (value: Duration): number => parseDuration(value) ?? 0

export const secret = () =>
  z
    .string({ error: (issue) => expected('text', issue.input) })
    .min(1, { error: 'expected text, got nothing' })
    .transform((value) => new Secret(value))

/** A URL that may have a password in it. */
export const secretUrl = (protocols: readonly string[]) => {
  const error = `expected a URL that begins with ${protocols.map((one) => `${one}//`).join(' or ')}`
  return z
    .string({ error })
    .refine((value) => isUrl(value, protocols), { error })
    .transform((value) => Secret.ofUrl(value))
}

export const webUrl = () => {
  const error = 'expected a URL that begins with https:// or http://'
  return z.string({ error }).refine((value) => isUrl(value, ['https:', 'http:']), { error })
}

const isUrl = (value: string, protocols: readonly string[]) =>
  URL.canParse(value) && protocols.includes(new URL(value).protocol)

export interface Address {
  readonly host: string
  readonly port: number
}

/** Where to listen: `'127.0.0.1:8080'`, `'[::1]:8080'`, `'0.0.0.0:8080'`. */
export const address = () => {
  const error = "expected an address and a port, such as '127.0.0.1:8080'"
  return z
    .string({ error })
    .refine((value) => parseAddress(value) !== undefined, { error })
    .transform((value) => parseAddress(value) as Address)
}

const MOST_PORT = 65_535

function parseAddress(value: string): Address | undefined {
  const match = /^(?:\[([\da-fA-F:]+)\]|([\w.-]+)):(\d{1,5})$/.exec(value)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  return host === undefined || port > MOST_PORT ? undefined : { host, port }
}

export const shownAddress = ({ host, port }: Address): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`

/** Only this machine can connect to it. */
export const isLoopback = ({ host }: Address): boolean =>
  host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)

/** A list, or text with commas: that is how a placeholder gives one. */
export const list = (what: string) => {
  const error = `expected a list of ${what}`
  return z
    .union([z.array(z.string()), z.string()], { error })
    .transform((value) => (typeof value === 'string' ? value.split(',') : value))
    .transform((items) => items.map((item) => item.trim()))
    .refine((items) => items.length > 0 && items.every((item) => item !== ''), { error })
}

/** What Fastify calls the networks that are nobody's on the internet. */
const NAMED_NETWORKS: readonly string[] = ['loopback', 'linklocal', 'uniquelocal']
const BITS: Readonly<Record<number, number>> = { 4: 32, 6: 128 }

/** Addresses, networks as `10.0.0.0/8`, and names of networks. Names of hosts are not looked up. */
export const networks = () => {
  const error = `expected a list of addresses, networks such as '10.0.0.0/8', or some of ${NAMED_NETWORKS.join(', ')}`
  return list('addresses or networks').refine((items) => items.every(isNetwork), { error })
}

function isNetwork(text: string): boolean {
  if (NAMED_NETWORKS.includes(text)) return true
  const [, host = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const most = BITS[isIP(host)]
  if (most === undefined) return false
  return bits === undefined || (Number(bits) >= 1 && Number(bits) <= most)
}

const expected = (what: string, input: unknown) =>
  `expected ${what}, got ${input === undefined ? 'nothing' : typeof input}`
