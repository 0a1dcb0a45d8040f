import { createHash, randomUUID } from 'node:crypto'
import type { Browser, Page } from 'playwright-core'
import { openTab, type Tab } from './browser.ts'
import type { Stage } from './stage.ts'

/** No provider has this address: the tests store sessions, as a login would. */
export const ISSUER = 'https://id.shop.example'
export const OIDC = {
  issuer: ISSUER,
  clientId: 'redrive',
  clientSecret: 'a secret of the client',
}

export interface Session {
  readonly id: string
  readonly secret: string
}

/** Stores a session of a user. */
export async function signIn(
  { pool }: Stage,
  subject: string,
  groups: readonly string[] = [],
): Promise<Session> {
  const person = `${ISSUER}#${subject}`
  const secret = randomUUID()
  const id = randomUUID()
  await pool.query(
    `insert into redrive_server.person (id, name, groups) values ($1, $2, $3)
     on conflict (id) do update set logged_in_at = now()`,
    [person, `${subject} of Shop`, groups],
  )
  await pool.query(
    'insert into redrive_server.session (secret_hash, id, person_id) values ($1, $2, $3)',
    [createHash('sha256').update(secret).digest(), id, person],
  )
  return { id, secret }
}

/** Gives the cookie of a session to the browser context of a page. */
export const giveCookie = (page: Page, { url }: Stage, { secret }: Session): Promise<void> =>
  page
    .context()
    .addCookies([
      { name: 'redrive-loopback', value: secret, url: new URL(url).origin, httpOnly: true },
    ])

/** Opens a tab with a new session of a user. */
export async function openAs(
  browser: Browser,
  stage: Stage,
  subject: string,
  {
    groups = [],
    look = {},
  }: { groups?: readonly string[]; look?: Parameters<typeof openTab>[1] } = {},
): Promise<Tab & { readonly id: string }> {
  const tab = await openTab(browser, look)
  const session = await signIn(stage, subject, groups)
  await giveCookie(tab.page, stage, session)
  return { ...tab, id: session.id }
}
