import { Link } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Button } from '../components/button.tsx'
import { Icon, Logo } from '../components/icon.tsx'
import { Kbd } from '../components/kbd.tsx'
import { connection } from '../data/connection.ts'
import { isLive, liveQueries } from '../data/live.ts'
import { useNow } from '../clock.ts'
import { timeMode } from '../preferences.ts'
import { useStore } from '../store.ts'
import { modeName, TIME_MODES } from '../words/times.ts'
import { overlay } from './overlays.ts'
import './page.css'

export interface Crumb {
  readonly label: string
  readonly to: string
}

export interface PageProps {
  readonly title: string
  /** Pages above this one. */
  readonly crumbs?: readonly Crumb[]
  /** Whether the title in the bar is the heading of the page. Otherwise the page has its own. */
  readonly isHeading?: boolean
  readonly children: ReactNode
}

/** The bar and the content of a screen. */
export function Page({ title, crumbs = [], isHeading = false, children }: PageProps) {
  const Title = isHeading ? 'h1' : 'b'
  return (
    <>
      <title>{`${title} · Redrive`}</title>
      <header className="bar">
        <span className="only-narrow">
          <Logo />
        </span>
        <nav className="crumbs cut" aria-label="Breadcrumb">
          {crumbs.map(({ label, to }) => (
            <span key={to}>
              <Link to={to}>{label}</Link>
              <span aria-hidden="true">/</span>
            </span>
          ))}
          <Title className="cut">{title}</Title>
        </nav>
        <span className="grow" />
        <Controls />
      </header>
      <main className="page" id="content" tabIndex={-1}>
        {children}
      </main>
    </>
  )
}

/** Changes how times are shown: relative, local, UTC. */
export function nextTimeMode(): void {
  const at = TIME_MODES.indexOf(timeMode.get())
  timeMode.set(TIME_MODES[(at + 1) % TIME_MODES.length] ?? 'relative')
}

function Controls() {
  const live = useStore(isLive)
  const hasUpdates = useStore(liveQueries) > 0
  const isLost = useStore(connection).state === 'lost'
  const mode = useStore(timeMode)
  const now = useNow()
  return (
    <>
      <span className="only-wide">
        <Button size="small" kind="ghost" onClick={() => overlay.set('palette')}>
          <Icon name="search" size={14} />
          Go to <Kbd keys="Ctrl K" />
        </Button>
      </span>
      {hasUpdates || isLost ? (
        <span className="live" data-paused={live && !isLost ? undefined : ''} role="status">
          {isLost ? 'Offline' : live ? 'Live' : 'Paused'}
        </span>
      ) : null}
      {hasUpdates ? (
        <Button
          size="small"
          kind="ghost"
          isIcon
          aria-label={live ? 'Pause live updates' : 'Resume live updates'}
          onClick={() => isLive.set(!live)}
        >
          <Icon name={live ? 'pause' : 'play'} />
        </Button>
      ) : null}
      <span className="only-wide row">
        <Button
          size="small"
          kind="ghost"
          aria-label={`Times: ${modeName(mode, now)}. Change`}
          onClick={nextTimeMode}
        >
          <Icon name="clock" />
          {modeName(mode, now)}
        </Button>
        <Button
          size="small"
          kind="ghost"
          isIcon
          aria-label="Keys"
          onClick={() => overlay.set('keys')}
        >
          <Kbd keys="?" />
        </Button>
      </span>
    </>
  )
}
