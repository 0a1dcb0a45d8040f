import { createRootRoute, createRoute, createRouter } from '@tanstack/react-router'
import { PAGE } from './page-facts.ts'
import { NotBuilt } from './screens/not-built/not-built.tsx'
import { Overview } from './screens/overview/overview.tsx'
import { NotFound } from './screens/not-built/not-found.tsx'
import { parseSearch, stringifySearch, textsOf } from './search.ts'
import { Shell } from './shell/shell.tsx'

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound })

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: Overview,
})

/** The screens that follow. Their addresses are final. */
const later = createRoute({
  getParentRoute: () => root,
  path: '/$',
  validateSearch: (search: Record<string, unknown>) => textsOf(search, 'group', 'q'),
  component: NotBuilt,
})

export const router = createRouter({
  routeTree: root.addChildren([home, later]),
  basepath: PAGE.base,
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  scrollRestoration: true,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
