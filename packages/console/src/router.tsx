import {
  createRootRoute,
  createRoute,
  createRouter,
  lazyRouteComponent,
  Navigate,
} from '@tanstack/react-router'
import { GROUP_ORDERS } from '@redrive/api/enums'
import { DRAFT_FIELDS } from './words/rule-draft.ts'
import { GROUP_TABS, GROUP_VIEWS } from './words/group-filter.ts'
import {
  BODY_VIEWS,
  COMPARED,
  ITEM_TABS,
  MESSAGE_RANGES,
  OUTAGE_KINDS,
  OUTAGES,
  RUN_VIEWS,
} from './address-values.ts'
import { RANGES, type RangeName } from './words/trends.ts'
import { PAGE } from './page-facts.ts'
import { Overview } from './screens/overview/overview.tsx'
import { NotFound } from './screens/not-found.tsx'
import { ScreenError } from './screens/screen-error.tsx'
import { SECTIONS } from './screens/groups/sections.ts'
import { oneOf, parseSearch, stringifySearch, textsOf } from './search.ts'
import { Shell } from './shell/shell.tsx'

const root = createRootRoute({ component: Shell, notFoundComponent: NotFound })

const home = createRoute({
  getParentRoute: () => root,
  path: '/',
  component: Overview,
})

const groups = createRoute({
  getParentRoute: () => root,
  path: '/groups',
  validateSearch: (search: Record<string, unknown>) => ({
    ...textsOf(search, 'q'),
    ...oneOf(search, 'view', GROUP_VIEWS),
    ...oneOf(search, 'order', GROUP_ORDERS),
    ...oneOf(search, 'by', SECTIONS),
  }),
  component: lazyRouteComponent(() => import('./screens/groups/groups.tsx'), 'Groups'),
})

const group = createRoute({
  getParentRoute: () => root,
  path: '/groups/$id',
  validateSearch: (search: Record<string, unknown>) => ({
    ...oneOf(search, 'tab', GROUP_TABS),
    ...oneOf(search, 'range', Object.keys(RANGES) as RangeName[]),
  }),
  component: lazyRouteComponent(() => import('./screens/group/group.tsx'), 'GroupScreen'),
})

const messages = createRoute({
  getParentRoute: () => root,
  path: '/messages',
  validateSearch: (search: Record<string, unknown>) => ({
    ...textsOf(search, 'q', 'columns'),
    ...oneOf(search, 'range', MESSAGE_RANGES),
  }),
  component: lazyRouteComponent(() => import('./screens/messages/messages.tsx'), 'Messages'),
})

const message = createRoute({
  getParentRoute: () => root,
  path: '/messages/$id',
  validateSearch: (search: Record<string, unknown>) => ({
    ...textsOf(search, 'from'),
    ...oneOf(search, 'body', BODY_VIEWS),
  }),
  component: lazyRouteComponent(() => import('./screens/message/message.tsx'), 'MessageScreen'),
})

const newReplay = createRoute({
  getParentRoute: () => root,
  path: '/replays/new',
  validateSearch: (search: Record<string, unknown>) => textsOf(search, 'group', 'q', 'ids'),
  component: lazyRouteComponent(() => import('./screens/new-replay/new-replay.tsx'), 'NewReplay'),
})

const replays = createRoute({
  getParentRoute: () => root,
  path: '/replays',
  validateSearch: (search: Record<string, unknown>) => oneOf(search, 'view', RUN_VIEWS),
  component: lazyRouteComponent(() => import('./screens/replays/replays.tsx'), 'Replays'),
})

const run = createRoute({
  getParentRoute: () => root,
  path: '/replays/$id',
  validateSearch: (search: Record<string, unknown>) => ({
    ...oneOf(search, 'items', ITEM_TABS),
    ...textsOf(search, 'after'),
  }),
  component: lazyRouteComponent(() => import('./screens/run/run.tsx'), 'RunScreen'),
})

const approvals = createRoute({
  getParentRoute: () => root,
  path: '/approvals',
  validateSearch: (search: Record<string, unknown>) => textsOf(search, 'run'),
  component: lazyRouteComponent(() => import('./screens/approvals/approvals.tsx'), 'Approvals'),
})

const edit = createRoute({
  getParentRoute: () => root,
  path: '/messages/$id/edit',
  component: lazyRouteComponent(() => import('./screens/edit/edit.tsx'), 'Edit'),
})

const sources = createRoute({
  getParentRoute: () => root,
  path: '/sources',
  validateSearch: (search: Record<string, unknown>) => textsOf(search, 'source'),
  component: lazyRouteComponent(() => import('./screens/sources/sources.tsx'), 'Sources'),
})

const policy = createRoute({
  getParentRoute: () => root,
  path: '/sources/$source/policy',
  validateSearch: (search: Record<string, unknown>) => ({
    ...textsOf(search, 'policy', 'arrivals', 'capacity', 'inFlight'),
    ...oneOf(search, 'outage', OUTAGES),
    ...oneOf(search, 'kind', OUTAGE_KINDS),
    ...oneOf(search, 'compare', COMPARED),
  }),
  component: lazyRouteComponent(() => import('./screens/policy/policy.tsx'), 'PolicyScreen'),
})

const setAside = createRoute({
  getParentRoute: () => root,
  path: '/sources/set-aside',
  validateSearch: (search: Record<string, unknown>) => textsOf(search, 'q', 'entry'),
  component: lazyRouteComponent(() => import('./screens/sources/set-aside.tsx'), 'SetAside'),
})

const audit = createRoute({
  getParentRoute: () => root,
  path: '/audit',
  validateSearch: (search: Record<string, unknown>) => textsOf(search, 'q', 'entry'),
  component: lazyRouteComponent(() => import('./screens/audit/audit.tsx'), 'Audit'),
})

const settings = createRoute({
  getParentRoute: () => root,
  path: '/settings',
  component: () => <Navigate to="/settings/tokens" replace />,
})

const tokens = createRoute({
  getParentRoute: () => root,
  path: '/settings/tokens',
  component: lazyRouteComponent(() => import('./screens/settings/tokens.tsx'), 'Tokens'),
})

const people = createRoute({
  getParentRoute: () => root,
  path: '/settings/people',
  validateSearch: (search: Record<string, unknown>) => textsOf(search, 'person'),
  component: lazyRouteComponent(() => import('./screens/settings/people.tsx'), 'People'),
})

const fingerprints = createRoute({
  getParentRoute: () => root,
  path: '/settings/fingerprints',
  validateSearch: (search: Record<string, unknown>) => textsOf(search, ...DRAFT_FIELDS),
  component: lazyRouteComponent(
    () => import('./screens/settings/fingerprints.tsx'),
    'Fingerprints',
  ),
})

const masks = createRoute({
  getParentRoute: () => root,
  path: '/settings/masks',
  component: lazyRouteComponent(() => import('./screens/settings/masks.tsx'), 'Masks'),
})

export const router = createRouter({
  routeTree: root.addChildren([
    home,
    groups,
    group,
    messages,
    message,
    edit,
    newReplay,
    replays,
    run,
    approvals,
    sources,
    policy,
    setAside,
    audit,
    settings,
    tokens,
    people,
    fingerprints,
    masks,
  ]),
  basepath: PAGE.base,
  parseSearch,
  stringifySearch,
  defaultPreload: 'intent',
  scrollRestoration: true,
  defaultErrorComponent: ScreenError,
})

declare module '@tanstack/react-router' {
  interface Register {
    router: typeof router
  }
}
