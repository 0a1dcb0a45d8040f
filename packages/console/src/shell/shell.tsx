import { ApiError } from '@redrive/api'
import { useQuery } from '@tanstack/react-query'
import { Link, Outlet, useNavigate } from '@tanstack/react-router'
import { Avatar } from '../components/avatar.tsx'
import { LoadError, Skeleton } from '../components/feedback.tsx'
import { Icon, Logo } from '../components/icon.tsx'
import { KeysHelp } from '../components/keys-help.tsx'
import { Menu, type MenuItem } from '../components/menu.tsx'
import { toast, Toasts } from '../components/toast.tsx'
import { signOut } from '../data/client.ts'
import { isLive } from '../data/live.ts'
import { MeContext } from '../data/me.ts'
import { roleText } from '../data/permissions.ts'
import { type Me, meQuery } from '../data/queries.ts'
import { useKeys } from '../keys.ts'
import { chooseTheme, theme } from '../preferences.ts'
import { SignIn } from '../screens/sign-in/sign-in.tsx'
import { useStore } from '../store.ts'
import { Bars } from './bars.tsx'
import { type NavCount, useNavCounts } from './counts.ts'
import { GoTo } from './go-to.tsx'
import { NAV, navFor, type NavItem } from './nav.ts'
import { overlay } from './overlays.ts'
import { nextTimeMode } from './page.tsx'
import './shell.css'

/** The frame of every screen. It waits for the caller, and shows the sign-in page without one. */
export function Shell() {
  const me = useQuery(meQuery)
  if (me.data !== undefined) return <SignedIn me={me.data} />
  if (me.error instanceof ApiError && me.error.code === 'unauthenticated') return <SignIn />
  return (
    <main className="shell-start">
      {me.error === null ? (
        <Skeleton />
      ) : (
        <LoadError what="the console" error={me.error} onRetry={() => void me.refetch()} />
      )}
    </main>
  )
}

function SignedIn({ me }: { readonly me: Me }) {
  const counts = useNavCounts()
  const items = navFor(me)
  const shown = useStore(overlay)
  const close = () => overlay.set(undefined)
  useShellKeys()
  return (
    <MeContext value={me}>
      <a className="skip" href="#content">
        Skip to content
      </a>
      <div className="shell">
        <nav className="side only-wide" aria-label="Main">
          <div className="brand">
            <Logo />
            <span>Redrive</span>
          </div>
          <ul className="side-list">
            {items.map((item) => (
              <li key={item.name} data-apart={item.isApart ? '' : undefined}>
                <NavLink item={item} count={counts[item.name]} />
              </li>
            ))}
          </ul>
          <UserMenu me={me} />
        </nav>
        <div className="shell-main">
          <Bars me={me} />
          <Outlet />
        </div>
      </div>
      <TabBar items={items} counts={counts} />
      <Toasts />
      {shown === 'keys' ? <KeysHelp onClose={close} /> : null}
      {shown === 'palette' ? <GoTo onClose={close} /> : null}
    </MeContext>
  )
}

interface NavLinkProps {
  readonly item: NavItem
  readonly count: NavCount | undefined
}

const NavLink = ({ item: { label, to, icon }, count }: NavLinkProps) => (
  <Link to={to} activeOptions={{ exact: to === '/' }} title={label}>
    <Icon name={icon} />
    <span className="side-label">{label}</span>
    {count === undefined ? null : (
      <span className="side-count" data-tone={count.tone}>
        {count.text}
      </span>
    )}
  </Link>
)

const THEMES = { system: 'System theme', light: 'Light theme', dark: 'Dark theme' } as const

function useUserItems(me: Me): readonly MenuItem[] {
  const current = useStore(theme)
  const themes = (Object.keys(THEMES) as (keyof typeof THEMES)[]).map((name) => ({
    label: THEMES[name],
    isChosen: name === current,
    onChoose: () => chooseTheme(name),
  }))
  const out = { label: 'Sign out', onChoose: () => void signOut() }
  return me.via === 'session' ? [...themes, out] : themes
}

function UserMenu({ me }: { readonly me: Me }) {
  return (
    <div className="side-foot">
      <Menu kind="ghost" items={useUserItems(me)}>
        <Avatar name={me.name} />
        <span className="side-person">
          <b className="small cut">{me.name}</b>
          <span className="tiny faint">{roleText(me)}</span>
        </span>
        <span className="visually-hidden">: theme and sign-out</span>
      </Menu>
    </div>
  )
}

interface TabBarProps {
  readonly items: readonly NavItem[]
  readonly counts: ReturnType<typeof useNavCounts>
}

/** The main screens on a narrow page. The menu has the others. */
function TabBar({ items, counts }: TabBarProps) {
  const navigate = useNavigate()
  const others = items.filter(({ isTab }) => isTab !== true)
  return (
    <nav className="tab-bar only-narrow" aria-label="Main">
      {items
        .filter(({ isTab }) => isTab === true)
        .map(({ name, label, to, icon }) => (
          <Link key={name} to={to} activeOptions={{ exact: to === '/' }}>
            <Icon name={icon} size={20} />
            {label}
            {counts[name] === undefined ? null : (
              <span className="tab-bar-count" data-tone={counts[name].tone}>
                {counts[name].text.split(' ')[0]}
                <span className="visually-hidden"> {counts[name].text.split(' ')[1]}</span>
              </span>
            )}
          </Link>
        ))}
      <Menu
        kind="ghost"
        items={others.map(({ label, to }) => ({ label, onChoose: () => void navigate({ to }) }))}
      >
        <Icon name="more" size={20} />
        More
      </Menu>
    </nav>
  )
}

/** Binds the keys that work on every screen. */
function useShellKeys(): void {
  const navigate = useNavigate()
  const goTo = Object.fromEntries(
    NAV.flatMap(({ key, to }) =>
      key === undefined ? [] : [[`g ${key}`, () => void navigate({ to })]],
    ),
  )
  useKeys({
    ...goTo,
    'Mod+k': () => overlay.set('palette'),
    '?': () => overlay.set('keys'),
    '/': () => {
      const filter = document.querySelector<HTMLElement>('[data-filter]')
      if (filter === null) overlay.set('palette')
      else filter.focus()
    },
    t: nextTimeMode,
    l: () => isLive.set(!isLive.get()),
    y: () => {
      void navigator.clipboard.writeText(location.href)
      toast({ text: 'Link copied', tone: 'good' })
    },
  })
}
