import { createPrivateKey } from 'node:crypto'
import type { AlertChannel } from '@redrive/alerts'
import type { Action } from '@redrive/api/enums'
import { type AutoReplayRun, catalog, type Catalog, type PayloadKeys } from '@redrive/catalog'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { grantsAllow } from '../access/allow.ts'
import { type Audit, createAudit } from '../audit/audit.ts'
import { type Checkpoints, startCheckpoints } from '../audit/checkpoint.ts'
import type { Config } from '../config/schema.ts'
import { msOf, shownAddress } from '../config/values.ts'
import { omitUndefined } from '../omit-undefined.ts'
import { createIdentity, type IdentityOptions, type ServerIdentity } from '../identity/identity.ts'
import { issueToken } from '../identity/issue.ts'
import type { NewToken, TokenRequest } from '../identity/port.ts'
import { originsOf } from './origins.ts'
import { channelsOf } from '../alerts/channels.ts'
import { createAlerting, type DeliverAlerts } from '../alerts/deliver-alerts.ts'
import { createDescribe } from '../alerts/describe.ts'
import { createReading, type Reading } from '../reading/reading.ts'
import type { Log } from './log.ts'
import { STORES } from '../config/source.ts'

/** The components that all parts of a process share. */
export interface ServerComponents {
  readonly catalog: Catalog
  readonly audit: Audit
  readonly identity: ServerIdentity
}

export function createParts(config: Config, pool: Pool): ServerComponents {
  const audit = createAudit({ pool })
  return {
    catalog: catalog({
      pool,
      approval: config.approval,
      approvalMaxPause: config.approvalMaxPause,
      searchTimeout: config.limits.searchTimeout,
      schemaTimeout: config.limits.schemaTimeout,
      runRetention: config.retention.runs,
      origins: originsIn(config),
      proofs: proofsIn(config),
      fingerprints: config.fingerprints.map(({ match, ...rule }) => ({
        ...omitUndefined(rule),
        match: omitUndefined(match),
      })),
      ...omitUndefined({ keys: keysOf(config) }),
    }),
    audit,
    identity: createIdentity({
      pool,
      audit: audit.write,
      publicUrl: publicUrlIn(config),
      auth: authOf(config),
      access: () => config.access,
    }),
  }
}

/** Returns the allowed replay destinations of each source. */
const originsIn = ({ sources }: Config) =>
  Object.fromEntries(Object.entries(sources).map(([name, config]) => [name, originsOf(config)]))

/** Returns what shows the outcomes of replays, for the sources that set it. No emitter confirms a replay. */
const proofsIn = ({ sources }: Config) =>
  Object.fromEntries(
    Object.entries(sources).flatMap(([name, config]) => {
      const isStore = STORES.some((kind) => config[kind] !== undefined)
      const proof = config.replay?.proof ?? (isStore ? 'returns' : undefined)
      return proof === undefined ? [] : [[name, proof]]
    }),
  )

/** Creates a token for a user without the API. The caller needs the config and the database. */
export function issueTokenFor(
  config: Config,
  pool: Pool,
  { subject, ...request }: TokenRequest & { readonly subject: string },
): Promise<NewToken> {
  const { audit, identity } = createParts(config, pool)
  const issuer = config.auth.oidc?.issuer
  return issueToken({ pool, audit: audit.write, identity, issuer, subject, request })
}

/** Returns the URL at which browsers reach the server. */
export const publicUrlIn = ({ publicUrl, listen, tls }: Config): string =>
  publicUrl ?? `${tls === undefined ? 'http' : 'https'}://${shownAddress(listen)}`

function authOf({ auth }: Config): IdentityOptions['auth'] {
  const { oidc, development } = auth
  if (development !== undefined) return { development }
  if (oidc === undefined) throw new RedriveError('POLICY_INVALID', 'auth: expected oidc')
  const { sessionIdle, sessionMaxAge, groupsMaxAge, clientSecret, ...rest } = oidc
  return {
    oidc: {
      ...rest,
      clientSecret: clientSecret?.reveal(),
      sessionIdleMs: msOf(sessionIdle),
      sessionMaxAgeMs: msOf(sessionMaxAge),
      groupsMaxAgeMs: msOf(groupsMaxAge),
    },
  }
}

function keysOf({ encryptionKeys: keys }: Config): PayloadKeys | undefined {
  if (keys === undefined) return undefined
  return {
    current: keys.current,
    get(id) {
      const key = Object.hasOwn(keys.all, id) ? keys.all[id] : undefined
      return key === undefined ? undefined : Buffer.from(key.reveal(), 'base64')
    },
  }
}

/** Returns what is hidden of messages. */
export const readingOf = ({ sources, masking }: Config): Reading =>
  createReading({ sources, detectors: masking.detectors })

/** Returns the function that delivers alerts, or undefined when no channel is configured. */
export function alertingOf(
  config: Config,
  pool: Pool,
  catalog: Catalog,
  log: Log,
): DeliverAlerts | undefined {
  const publicUrl = publicUrlIn(config)
  const channels = channelsOf(config, publicUrl).map(({ channel }) => channel)
  if (channels.length === 0) return undefined
  const describe = createDescribe({ catalog, reading: readingOf(config), publicUrl })
  const { perHour } = config.alerts
  const onFailure = ({ name }: AlertChannel, error: unknown) =>
    log.warn({ channel: name }, `Cannot send alerts to ${name}: ${String(error)}`)
  return createAlerting({ pool, channels, describe, perHour, onFailure })
}

/** Starts the checkpoints of the audit log if the config has a key and a file for them. */
export async function startAuditCheckpoints(
  { audit }: Config,
  pool: Pool,
  log: Log,
): Promise<Checkpoints | undefined> {
  const { signingKey, checkpointFile, checkpointInterval } = audit
  if (signingKey === undefined || checkpointFile === undefined) return undefined
  return startCheckpoints({
    pool,
    privateKey: createPrivateKey(signingKey.reveal()),
    file: checkpointFile,
    everyMs: msOf(checkpointInterval),
    onError: (error) => log.error({ err: error }, 'Cannot write a checkpoint of the audit log.'),
  })
}

/** The permissions to enable automatic replays. */
const ENABLES: readonly Action[] = ['configure', 'approve']

/**
 * Checks before each automatic replay run that the two users who enabled it still have their permissions, and writes
 * an audit entry. If one of them lost a permission, or the entry cannot be written, the run does not start. Groups count
 * however old the last sign-in is: automatic replays must not end at a weekend.
 */
export const admitAutoReplay =
  ({ audit, identity }: Pick<ServerComponents, 'audit' | 'identity'>) =>
  async ({ run, source, ...facts }: AutoReplayRun): Promise<void> => {
    for (const person of [facts.requestedBy, facts.approvedBy]) {
      if (person === undefined) continue
      const grants = await identity.grantsOf(person, { anyAge: true })
      const missing = ENABLES.find((action) => !grantsAllow(grants, action, source))
      if (missing !== undefined) throw notEnabled(source, person, missing)
    }
    await audit.write({
      caller: undefined,
      operation: 'autoReplay',
      outcome: 'requested',
      source,
      subject: run,
      facts: omitUndefined(facts),
    })
  }

const notEnabled = (source: string, person: string, missing: Action) =>
  new RedriveError(
    'CONFLICT',
    `Automatic replay of source "${source}" was enabled by "${person}", who no longer has permission "${missing}" on it. So its runs do not start. Disable it, and let two other users enable it`,
  )

/** Warns that the server needs no login. A forgotten development config is easy to overlook. */
export function warnOfDevelopment({ auth: { development }, listen }: Config, log: Log): void {
  if (development === undefined) return
  log.warn(
    `auth.development is set: every client that can connect to ${shownAddress(listen)} has the role ${development.roles.join(', ')} on all sources, without a login. Set auth.oidc before other people use this server.`,
  )
}
