import { DETECTORS } from '@redrive/api/enums'
import { z } from 'zod'
import { alerts } from './alerts.ts'
import { audit } from './audit.ts'
import { auth, binding } from './auth.ts'
import { fingerprints } from './fingerprints.ts'
import { POSTGRES } from './brokers.ts'
import { source } from './source.ts'
import {
  address,
  duration,
  flag,
  networks,
  secret,
  secretUrl,
  text,
  webUrl,
  whole,
} from './values.ts'
import { clientTls, serverTls } from './tls.ts'

const database = z.strictObject({
  url: secretUrl(POSTGRES).describe('URL of the primary database server, not of a replica'),
  connections: whole(12, 1_000)
    .describe('Maximum number of connections of one process (12–1,000, default 14)')
    .default(14),
  startupTimeout: duration('0ms', '1h')
    .describe("How long the server waits for the database at startup (0–'1h', default '1m')")
    .default('1m'),
  tls: clientTls
    .describe('TLS of the connection: true, false, or certificates. Default: as in the URL')
    .optional(),
})

const keys = z
  .strictObject({
    current: text(255).describe('Name of the key that encrypts new dead letters'),
    all: z
      .record(z.string(), secret())
      .describe('Every key that was ever current, by name: 32 bytes as base64'),
  })
  .superRefine(({ current, all }, context) => {
    if (all[current] === undefined) {
      context.addIssue({
        code: 'custom',
        path: ['current'],
        message: 'expected the name of a key in encryptionKeys.all',
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

const masking = z.strictObject({
  detectors: z
    .array(z.enum(DETECTORS, { error: `expected a list with some of ${DETECTORS.join(', ')}` }))
    .describe('Kinds of values to hide in error messages, keys, headers and previews. Default: all')
    .default([...DETECTORS]),
  unmaskedPerHour: whole(1, 100_000)
    .describe(
      'How many original messages a person with "view_unmasked" may see in an hour (1–100,000, default 100)',
    )
    .default(100),
})

const limits = z.strictObject({
  requestsPerMinute: whole(1, 1_000_000)
    .describe('Maximum number of requests of one caller, by credential or address. Default 600')
    .default(600),
  bodyBytes: whole(1_024, 104_857_600)
    .describe('Maximum size of a request body. Default 1 MiB')
    .default(1_048_576),
  searchTimeout: duration('100ms', '1m')
    .describe("Timeout of a search ('100ms'–'1m', default '2s')")
    .default('2s'),
  schemaTimeout: duration('100ms', '10m')
    .describe(
      "Maximum time for all schema checks of one replay plan ('100ms'–'10m', default '30s'). The plan skips dead letters that were not checked in it",
    )
    .default('30s'),
})

const retention = z.strictObject({
  settled: duration('1h', '3650d')
    .describe(
      "How long resolved, discarded, expired and not returned dead letters are kept ('1h'–'3650d', default '14d')",
    )
    .default('14d'),
  open: duration('1h', '3650d')
    .describe(
      "How long dead letters are kept that still need a decision: open, in a replay, or with an unknown outcome ('1h'–'3650d', default '90d'). A shorter time than `settled` has no effect",
    )
    .default('90d'),
  runs: duration('1h', '3650d')
    .describe(
      "How long ended replay runs and their items are kept ('1h'–'3650d', default '90d'). Runs in progress, and runs with an unknown outcome, are never deleted",
    )
    .default('90d'),
})

const metrics = z.strictObject({
  listen: address()
    .describe(
      'Separate address for /metrics, without authentication. Default: `listen`, for callers with permission "view" on all sources',
    )
    .optional(),
})

const shutdown = z.strictObject({
  grace: duration('1s', '1h')
    .describe("Maximum time from the signal to the exit of the process ('1s'–'1h', default '25s')")
    .default('25s'),
  readinessDelay: duration('0ms', '5m')
    .describe(
      "How long the server accepts connections after it reports not ready. In this time load balancers stop using it. Default '3s'",
    )
    .default('3s'),
})

/** The settings of `redrive.config.{yaml,yml,json,ts,js}`. */
export const configSchema = z.strictObject({
  $schema: z.string().describe('Path of the JSON Schema, for editors. Default: none').optional(),
  database: database.describe('PostgreSQL database of the catalog and of the server'),
  listen: address()
    .describe("Address of the API and the health checks. Default '127.0.0.1:8080'")
    .prefault('127.0.0.1:8080'),
  publicUrl: webUrl()
    .describe('URL at which browsers reach the server. Default: http:// or https:// and `listen`')
    .optional(),
  tls: serverTls
    .describe(
      'Certificate of the server. With it, `listen` accepts only https. Changed files are used without a restart. Default: http',
    )
    .optional(),
  trustProxy: networks()
    .describe('Addresses and networks of proxies whose X-Forwarded-For is trusted. Default: none')
    .optional(),
  auth: auth.describe('How callers authenticate. Set exactly one of its keys'),
  access: z
    .array(binding)
    .describe('Roles of users and groups on sources. Default: none')
    .default([]),
  approval: z
    .enum(['another_person', 'anyone'], { error: "expected 'another_person' or 'anyone'" })
    .describe(
      "User who may approve a replay run. Default 'another_person': the planner cannot approve their own run",
    )
    .default('another_person'),
  approvalMaxPause: duration('1m', '90d')
    .describe(
      "How long a replay run can be paused and still be resumed without a new approval ('1m'–'90d', default '24h')",
    )
    .default('24h'),
  allowOwnApproval: flag()
    .describe(
      "Confirm `approval: 'anyone'` together with auth.oidc: one person may then replay alone. Default false",
    )
    .default(false),
  sources: z
    .record(z.string().min(1).max(255), source)
    .describe('Sources by name. Do not rename a source'),
  fingerprints: fingerprints
    .describe(
      'Rules that name the group of matching dead letters; the first match decides. They apply to new dead letters. `redrive fingerprints apply` moves existing ones. Default: none',
    )
    .default([]),
  encryptionKeys: keys
    .describe('Keys that encrypt the payloads of new dead letters. Default: no encryption')
    .optional(),
  audit: audit.describe('Checkpoints and export of the audit log').prefault({}),
  alerts: alerts.describe('When the server sends alerts, and to which channels').prefault({}),
  retention: retention
    .describe('How long the catalog keeps data. A source can set its own `retention`')
    .prefault({}),
  masking: masking.describe('Values to hide in every source').prefault({}),
  limits: limits.describe('Limits of requests').prefault({}),
  metrics: metrics.describe('Prometheus metrics').prefault({}),
  shutdown: shutdown.describe('How the server stops').prefault({}),
  migrate: flag()
    .describe('Apply migrations at startup. Default false: run `redrive migrate`')
    .default(false),
  restoreMarkerFile: text(4_096)
    .describe(
      'File outside the database. The server uses it to detect a restored database. Default: none',
    )
    .optional(),
})

export type Config = z.output<typeof configSchema>
/** A config as users write it: durations, addresses and secrets are text; settings with a default are optional. */
export type ConfigInput = z.input<typeof configSchema>

/** Returns the config unchanged. In `redrive.config.ts` it gives completion and type checks. */
export const defineConfig = (config: ConfigInput): ConfigInput => config

/** Returns the JSON Schema of the config, for editors. */
export function configJsonSchema(): Record<string, unknown> {
  const schema = z.toJSONSchema(configSchema, { io: 'input', target: 'draft-2020-12' })
  return { ...schema, $id: 'urn:redrive:config', title: 'Redrive' }
}
