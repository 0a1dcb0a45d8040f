import { createPrivateKey } from 'node:crypto'
import { catalog, type Catalog, type PayloadKeys } from '@redrive/catalog'
import { RedriveError } from '@redrive/core'
import type { Pool } from 'pg'
import { type Audit, createAudit } from '../audit/audit.ts'
import { type Checkpoints, startCheckpoints } from '../audit/checkpoint.ts'
import type { Config } from '../config/schema.ts'
import { msOf, shownAddress } from '../config/values.ts'
import { given } from '../given.ts'
import { createIdentity, type IdentityOptions, type ServerIdentity } from '../identity/identity.ts'
import { issueToken } from '../identity/issue.ts'
import type { NewToken, TokenRequest } from '../identity/port.ts'
import { originsOf } from './origins.ts'
import { createAlerting, type Listener, type TellAlerts } from '../outgoing/alerts.ts'
import type { Log } from './log.ts'

/** What everything in a process shares. */
export interface ServerParts {
  readonly catalog: Catalog
  readonly audit: Audit
  readonly identity: ServerIdentity
}

export function createParts(config: Config, pool: Pool): ServerParts {
  const audit = createAudit({ pool })
  return {
    catalog: catalog({
      pool,
      approval: config.approval,
      searchTimeout: config.limits.search,
      origins: originsIn(config),
      ...given({ keys: keysOf(config) }),
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

/** To where the config says, and nowhere else. */
const originsIn = ({ sources }: Config) =>
  Object.fromEntries(Object.entries(sources).map(([name, said]) => [name, originsOf(said)]))

/** A token for that person, made where the config is instead of over the API. */
export function issueTokenFor(
  config: Config,
  pool: Pool,
  { subject, ...request }: TokenRequest & { readonly subject: string },
): Promise<NewToken> {
  const { audit, identity } = createParts(config, pool)
  const issuer = config.auth.oidc?.issuer
  return issueToken({ pool, audit: audit.write, identity, issuer, subject, request })
}

/** As people and browsers see the server. */
export const publicUrlIn = ({ publicUrl, listen }: Config): string =>
  publicUrl ?? `http://${shownAddress(listen)}`

function authOf({ auth }: Config): IdentityOptions['auth'] {
  const { oidc, development } = auth
  if (development !== undefined) return { development }
  if (oidc === undefined) throw new RedriveError('POLICY_INVALID', 'auth: expected oidc')
  const { sessionIdle, sessionMost, clientSecret, ...rest } = oidc
  return {
    oidc: {
      ...rest,
      clientSecret: clientSecret?.reveal(),
      sessionIdleMs: msOf(sessionIdle),
      sessionMostMs: msOf(sessionMost),
    },
  }
}

function keysOf({ keys }: Config): PayloadKeys | undefined {
  if (keys === undefined) return undefined
  return {
    current: keys.current,
    get(id) {
      const key = Object.hasOwn(keys.all, id) ? keys.all[id] : undefined
      return key === undefined ? undefined : Buffer.from(key.reveal(), 'base64')
    },
  }
}

/** Tells alerts; undefined: there is nobody to tell. */
export function alertingOf(
  config: Config,
  pool: Pool,
  listeners: readonly Listener[],
): TellAlerts | undefined {
  if (listeners.length === 0) return undefined
  return createAlerting({ pool, publicUrl: publicUrlIn(config), listeners })
}

/** Checkpoints of the audit, where the config says a key and a file. */
export async function startAuditCheckpoints(
  { audit }: Config,
  pool: Pool,
  log: Log,
): Promise<Checkpoints | undefined> {
  const { signingKey, checkpointFile, every } = audit
  if (signingKey === undefined || checkpointFile === undefined) return undefined
  return startCheckpoints({
    pool,
    privateKey: createPrivateKey(signingKey.reveal()),
    file: checkpointFile,
    everyMs: msOf(every),
    onError: (error) => log.error({ err: error }, 'A checkpoint of the audit was not written.'),
  })
}
