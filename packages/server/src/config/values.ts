import { allowProblem } from '@redrive/alerts/internal'
import { isIP } from 'node:net'
import { type Duration, parseDuration } from '@redrive/core'
import { z } from 'zod'
import { Secret } from './secret.ts'

/** Types of config values. Their errors contain the expected value and never a secret. */

/** A text that is not empty. */
export const text = (maxLength = 1_000) =>
  z
    .string({ error: (issue) => expected('text', issue.input) })
    .min(1, { error: 'expected text, got nothing' })
    .max(maxLength, { error: `expected at most ${maxLength} characters` })

/** A whole number, or a text with one, because placeholders always produce text. */
export const whole = (min: number, max: number) => {
  const error = `expected a whole number from ${min} to ${max}`
  return z
    .union(
      [
        z.int({ error }).min(min, { error }).max(max, { error }),
        z.string().regex(/^(\d+|.*\$\{.*)$/),
      ],
      { error },
    )
    .transform(Number)
    .refine((value) => Number.isSafeInteger(value) && value >= min && value <= max, { error })
}

/** A share from 0 to 1. */
export const share = () => {
  const error = 'expected a number from 0 to 1'
  return z.number({ error }).min(0, error).max(1, error)
}

export const flag = () =>
  z
    .union([z.boolean(), z.enum(['true', 'false'])], { error: 'expected true or false' })
    .transform((value) => value === true || value === 'true')

/** A duration such as `'250ms'`, `'5s'`, `'2m'`, `'1h'` or `'7d'`. */
export const duration = (min: Duration, max: Duration) => {
  const [minMs = 0, maxMs = 0] = [parseDuration(min), parseDuration(max)]
  const error = `expected a duration from '${min}' to '${max}'`
  return z
    .union([z.string(), z.number()], { error })
    .refine((value) => isWithin(parseDuration(value), minMs, maxMs), { error })
    .transform((value) => value as Duration)
}

const isWithin = (ms: number | undefined, minMs: number, maxMs: number) =>
  ms !== undefined && ms >= minMs && ms <= maxMs

/** Returns the milliseconds of a valid duration. */
export const msOf = (value: Duration): number => parseDuration(value) ?? 0

export const secret = () =>
  z
    .string({ error: (issue) => expected('text', issue.input) })
    .min(1, { error: 'expected text, got nothing' })
    .transform((value) => new Secret(value))

/** A URL that may contain a password. */
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

/** An address to listen on: `'127.0.0.1:8080'`, `'[::1]:8080'`, `'0.0.0.0:8080'`. */
export const address = () => {
  const error = "expected an address and a port, such as '127.0.0.1:8080'"
  return z
    .string({ error })
    .refine((value) => parseAddress(value) !== undefined, { error })
    .transform((value) => parseAddress(value) as Address)
}

const MAX_PORT = 65_535

function parseAddress(value: string): Address | undefined {
  const match = /^(?:\[([\da-fA-F:]+)\]|([\w.-]+)):(\d{1,5})$/.exec(value)
  const host = match?.[1] ?? match?.[2]
  const port = Number(match?.[3])
  return host === undefined || port > MAX_PORT ? undefined : { host, port }
}

export const shownAddress = ({ host, port }: Address): string =>
  host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`

/** Whether only this machine can connect to the address. */
export const isLoopback = ({ host }: Address): boolean =>
  host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)

/** A list, or a text with commas, which is what a placeholder produces. */
export const list = (what: string) => {
  const error = `expected a list of ${what}`
  return z
    .union([z.array(z.string()), z.string()], { error })
    .transform((value) => (typeof value === 'string' ? value.split(',') : value))
    .transform((items) => items.map((item) => item.trim()))
    .refine((items) => items.length > 0 && items.every((item) => item !== ''), { error })
}

/** Private targets that connections may use: addresses, ranges and host names. */
export const privateTargets = () => {
  const error = "expected addresses, ranges such as '10.0.0.0/8', or host names"
  return list('addresses, ranges or host names').refine(
    (entries) => entries.every((entry) => allowProblem(entry) === undefined),
    { error },
  )
}

/** Fastify's names of private networks. */
const NAMED_NETWORKS: readonly string[] = ['loopback', 'linklocal', 'uniquelocal']
const BITS: Readonly<Record<number, number>> = { 4: 32, 6: 128 }

/** Addresses, networks such as `10.0.0.0/8`, and names of networks. Host names are not resolved. */
export const networks = () => {
  const error = `expected a list of addresses, networks such as '10.0.0.0/8', or names from ${NAMED_NETWORKS.join(', ')}`
  return list('addresses or networks').refine((items) => items.every(isNetwork), { error })
}

function isNetwork(text: string): boolean {
  if (NAMED_NETWORKS.includes(text)) return true
  const [, host = '', bits] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const maxBits = BITS[isIP(host)]
  if (maxBits === undefined) return false
  return bits === undefined || (Number(bits) >= 1 && Number(bits) <= maxBits)
}

const expected = (what: string, input: unknown) =>
  `expected ${what}, got ${input === undefined ? 'nothing' : typeof input}`
