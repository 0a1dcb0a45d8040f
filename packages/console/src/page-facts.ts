const fact = (name: string): string =>
  document.querySelector<HTMLMetaElement>(`meta[name="redrive-${name}"]`)?.content ?? ''

const base = fact('base')

/** Facts that the server writes into the page. */
export const PAGE = {
  /** Path of the server, with a slash at both ends. */
  base: base.startsWith('/') ? base : '/',
  version: fact('version'),
  /** Host of the OpenID provider; empty in development mode. */
  signIn: fact('sign-in'),
} as const

/** Returns the address of the login, which returns to the current page. */
export const loginUrl = (): string =>
  `${PAGE.base}auth/login?returnTo=${encodeURIComponent(location.pathname + location.search)}`
