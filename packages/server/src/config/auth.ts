import { ROLES, type Role } from '@redrive/api/enums'
import { z } from 'zod'
import { duration, secret, text, webUrl } from './values.ts'

const oidc = z.strictObject({
  issuer: webUrl().describe('Issuer URL, exactly as in the discovery document of the provider'),
  clientId: text().describe('Client id of this server at the provider'),
  clientSecret: secret()
    .describe('Client secret. Default: none; the server is a public client that uses PKCE')
    .optional(),
  clientAuthentication: z
    .enum(['basic', 'post'], { error: "expected 'basic' or 'post'" })
    .describe("How the server sends the client secret. Default 'basic', as in the standard")
    .optional(),
  scopes: z
    .array(text())
    .refine((scopes) => scopes.includes('openid'), {
      error: "expected a list that includes 'openid'",
    })
    .describe('Scopes to request. Default openid, profile, email')
    .default(['openid', 'profile', 'email']),
  groupsClaim: text(255)
    .describe("Claim that lists the groups. Default 'groups'")
    .default('groups'),
  nameClaim: text(255)
    .describe("Claim that contains the display name. Default 'name'")
    .default('name'),
  sessionIdle: duration('1m', '24h')
    .describe("A session ends after this time without a request ('1m'–'24h', default '30m')")
    .default('30m'),
  sessionMaxAge: duration('5m', '30d')
    .describe("Maximum duration of a session ('5m'–'30d', default '12h')")
    .default('12h'),
  groupsMaxAge: duration('5m', '90d')
    .describe(
      "How long the groups of a user count after their last sign-in ('5m'–'90d', default '24h'). Then sessions end, and tokens lose the permissions of groups",
    )
    .default('24h'),
})

const roles = z
  .array(z.enum(Object.keys(ROLES) as [Role, ...Role[]], { error: rolesExpected() }))
  .min(1, { error: rolesExpected() })

function rolesExpected(): string {
  return `expected one or more of ${Object.keys(ROLES).join(', ')}`
}

const development = z.strictObject({
  name: text(255).describe("Name of every caller. Default 'developer'").default('developer'),
  roles: roles.describe('Roles of every caller, on all sources. Default admin').default(['admin']),
})

/** A complete sentence, because this is the first error that most users see. */
const NO_AUTHENTICATION =
  'the server does not start without authentication. Set auth.oidc, or auth.development to try the server on this machine only.'

/** How callers authenticate. */
export const auth = z
  .strictObject(
    {
      oidc: oidc.describe('Users sign in with an OpenID provider. Default: none').optional(),
      development: development
        .describe('Every client is the same user. Loopback addresses only. Default: none')
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

/** The roles of users and groups on sources. */
export const binding = z
  .strictObject({
    people: z.array(text()).describe('Subjects (`sub` claims) of users. Default: none').optional(),
    groups: z
      .array(text())
      .describe('Groups of users, as the provider names them. Default: none')
      .optional(),
    roles: roles.describe('Roles that they have on the sources'),
    sources: z
      .array(text())
      .min(1, { error: 'expected one or more names of sources' })
      .describe("Names of sources; `*` matches any part of a name: ['orders*']"),
  })
  .refine((one) => one.people !== undefined || one.groups !== undefined, {
    error: 'expected "people", "groups" or both',
  })
