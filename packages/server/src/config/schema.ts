import { ROLES, type Role } from '@redrive/api'
import { z } from 'zod'
import { POSTGRES, source } from './source.ts'
import {
  address,
  duration,
  flag,
  list,
  networks,
  secret,
  secretUrl,
  share,
  text,
  webUrl,
  whole,
} from './values.ts'

const database = z.strictObject({
  url: secretUrl(POSTGRES).describe('Of the primary, never of a replica'),
  connections: whole(12, 1_000)
    .describe('Most connections of one process. 12 to 1,000, default 20')
    .default(20),
  waitFor: duration('0ms', '1h')
    .describe("How long a database that does not answer is waited for at start. Default '1m'")
    .default('1m'),
})

const oidc = z.strictObject({
  issuer: webUrl().describe('Of the provider, exactly as its discovery document names it'),
  clientId: text().describe('Of this server, at the provider'),
  clientSecret: secret().describe('Default: a public client, with PKCE alone').optional(),
  clientAuthentication: z
    .enum(['basic', 'post'], { error: "expected 'basic' or 'post'" })
    .describe("How the secret is sent. Default 'basic', as the standard has it")
    .optional(),
  scopes: z
    .array(text())
    .refine((scopes) => scopes.includes('openid'), { error: "expected 'openid' among them" })
    .describe('What is asked for. Default openid, profile, email')
    .default(['openid', 'profile', 'email']),
  groupsClaim: text(255).describe("The claim with the groups. Default 'groups'").default('groups'),
  nameClaim: text(255).describe("The claim that people read. Default 'name'").default('name'),
  sessionIdle: duration('1m', '24h')
    .describe("A session ends when it is not used for so long. Default '30m'")
    .default('30m'),
  sessionMost: duration('5m', '30d')
    .describe("A session ends after so long, used or not. Default '12h'")
    .default('12h'),
})

const roles = z
  .array(z.enum(Object.keys(ROLES) as [Role, ...Role[]], { error: rolesExpected() }))
  .min(1, { error: rolesExpected() })

function rolesExpected(): string {
  return `expected some of ${Object.keys(ROLES).join(', ')}`
}

const development = z.strictObject({
  name: text(255).describe("Who everybody is. Default 'developer'").default('developer'),
  roles: roles
    .describe('What everybody may do, with all sources. Default admin')
    .default(['admin']),
})

/** Said in full, because it is the first thing that people meet. */
const NO_AUTHENTICATION =
  'the server does not start without authentication. Say how people sign in (auth.oidc), or, to try it on this machine alone, auth.development.'

const auth = z
  .strictObject(
    {
      oidc: oidc.describe('People sign in at an OpenID provider').optional(),
      development: development
        .describe('Everybody who can connect is the same person. Loopback addresses only')
        .optional(),
    },
    { error: (issue) => (issue.code === 'invalid_type' ? NO_AUTHENTICATION : undefined) },
  )
  .refine((one) => (one.oidc === undefined) !== (one.development === undefined), {
    error: (issue) =>
      Object.keys(issue.input as object).length === 0
        ? NO_AUTHENTICATION
        : 'expected exactly one of oidc, development',
  })

const binding = z
  .strictObject({
    people: z.array(text()).describe('Subjects (`sub`) of the provider').optional(),
    groups: z.array(text()).describe('Groups of the provider').optional(),
    roles,
    sources: z
      .array(text())
      .min(1, { error: 'expected names of sources' })
      .describe("Names of sources; `*` is any part of a name: ['orders*']"),
  })
  .refine((one) => one.people !== undefined || one.groups !== undefined, {
    error: 'expected people, groups or both',
  })

const keys = z
  .strictObject({
    current: text(255).describe('The key for what is ingested from now on'),
    all: z
      .record(z.string(), secret())
      .describe('32 bytes as base64, by name: every key that was ever current'),
  })
  .superRefine(({ current, all }, context) => {
    if (all[current] === undefined) {
      context.addIssue({
        code: 'custom',
        path: ['current'],
        message: 'there is no such key in all',
      })
    }
    for (const [name, key] of Object.entries(all)) {
      if (Buffer.from(key.reveal(), 'base64').length !== KEY_BYTES) {
        const message = `expected ${KEY_BYTES} bytes as base64`
        context.addIssue({ code: 'custom', path: ['all', name], message })
      }
    }
  })
const KEY_BYTES = 32

const audit = z.strictObject({
  signingKey: secret()
    .describe('Ed25519 private key, PEM: signs checkpoints of the audit. Default: none')
    .optional(),
  checkpointFile: text(4_096)
    .describe('Where checkpoints are added, outside of the database. Default: nowhere')
    .optional(),
  every: duration('10s', '1d')
    .describe("How often there is a checkpoint. Default '5m'")
    .default('5m'),
})

const WEBHOOK_SECRET = /^whsec_[\w+/]{32,86}={0,2}$/

const alerts = z.strictObject({
  webhooks: z
    .array(
      z.strictObject({
        url: secretUrl(['https:']).describe('https only; private addresses are refused'),
        secret: secret()
          .refine((one) => WEBHOOK_SECRET.test(one.reveal()), {
            error:
              'expected whsec_ and 24 to 64 bytes in base64: echo whsec_$(openssl rand -base64 32)',
          })
          .describe('Signs what is sent, as Standard Webhooks say: whsec_ and base64'),
      }),
    )
    .max(20, { error: 'expected at most 20 webhooks' })
    .describe('Told of every alert that begins to hold')
    .default([]),
  allowPrivate: list('networks')
    .describe(
      'What webhooks may reach although it is not public: 10.1.2.0/24, or a name. Default: none',
    )
    .optional(),
  depth: whole(1, 1_000_000_000).describe('Open dead letters of a source. Default 100').optional(),
  age: duration('1s', '3650d')
    .describe("Age of the one that waits longest. Default '30m'")
    .optional(),
  dominanceShare: share().describe('Share of one group in its source. Default 0.5').optional(),
  dominanceCount: whole(0, 1_000_000_000)
    .describe('How many it must be at least. Default 10')
    .optional(),
})

const limits = z.strictObject({
  requestsPerMinute: whole(1, 1_000_000)
    .describe('Of one caller, by credential or address. Default 600')
    .default(600),
  bodyBytes: whole(1_024, 104_857_600).describe('Of one request. Default 1 MiB').default(1_048_576),
  search: duration('100ms', '1m')
    .describe("How long a question may take before it is ended. Default '2s'")
    .default('2s'),
})

const metrics = z.strictObject({
  listen: address()
    .describe(
      'A listener for /metrics alone, without authentication. Default: /metrics is where the API is, for callers that may view all sources',
    )
    .optional(),
})

const shutdown = z.strictObject({
  grace: duration('1s', '1h')
    .describe("From the signal to the end of the process. Default '25s'")
    .default('25s'),
  notice: duration('0ms', '5m')
    .describe(
      "How long connections are still taken when readiness is off, so that nobody is sent here any more. Default '3s'",
    )
    .default('3s'),
})

/** All that can be said in `redrive.config.{yaml,yml,json,ts,js}`. */
export const configSchema = z.strictObject({
  $schema: z.string().describe('For editors').optional(),
  database,
  listen: address()
    .describe("Where the API and the health checks are. Default '127.0.0.1:8080'")
    .prefault('127.0.0.1:8080'),
  publicUrl: webUrl()
    .describe('As people and browsers see the server. Default: http:// and `listen`')
    .optional(),
  trustProxy: networks()
    .describe('Addresses and networks of proxies whose X-Forwarded-For is believed. Default: none')
    .optional(),
  auth,
  access: z.array(binding).describe('Who may do what with which sources').default([]),
  approval: z
    .enum(['another_person', 'anyone'], { error: "expected 'another_person' or 'anyone'" })
    .describe("Who may approve a run. Default 'another_person': not the one who planned it")
    .default('another_person'),
  sources: z.record(z.string().min(1).max(255), source).describe('By name. Never rename one'),
  keys: keys.describe('Encrypts payloads from now on. Default: they are in the clear').optional(),
  audit: audit.prefault({}),
  alerts: alerts.prefault({}),
  limits: limits.prefault({}),
  metrics: metrics.prefault({}),
  shutdown: shutdown.prefault({}),
  migrate: flag()
    .describe('Bring the schemas up to date at start. Default false: `redrive migrate` does')
    .default(false),
  witness: text(4_096)
    .describe('A file outside of the database that tells when it was restored. Default: none')
    .optional(),
})

export type Config = z.output<typeof configSchema>
/** As it is written: durations, addresses and secrets are text, and what has a default may be left out. */
export type ConfigInput = z.input<typeof configSchema>

/** For `redrive.config.ts`: editors complete it, and the compiler checks it. */
export const defineConfig = (config: ConfigInput): ConfigInput => config

/** What editors read. */
export function configJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(configSchema, { io: 'input', target: 'draft-2020-12' })
  return { ...schema, $id: 'urn:redrive:config', title: 'Redrive' }
}
