import { useNavigate } from '@tanstack/react-router'
import type { ReactNode } from 'react'
import { Tabs } from '../../components/tabs.tsx'
import { useMe } from '../../data/me.ts'
import { canEverywhere, canSomewhere } from '../../data/permissions.ts'
import type { Me } from '../../data/queries.ts'
import { Page } from '../../shell/page.tsx'
import './settings.css'

export type SettingsTab = 'tokens' | 'people' | 'fingerprints' | 'masks'

interface TabItem {
  readonly name: SettingsTab
  readonly label: string
  readonly isVisible: (me: Me) => boolean
}

// biome-ignore format: one row per tab
const TABS: readonly TabItem[] = [
  { name: 'tokens', label: 'API tokens', isVisible: () => true },
  { name: 'people', label: 'People and sessions', isVisible: (me) => canEverywhere(me, 'configure') },
  { name: 'fingerprints', label: 'Fingerprint rules', isVisible: (me) => canSomewhere(me, 'view') },
  { name: 'masks', label: 'Masks and detectors', isVisible: (me) => canSomewhere(me, 'view') },
]

const CRUMBS = [{ label: 'Settings', to: '/settings' }]

export interface SettingsPageProps {
  readonly tab: SettingsTab
  readonly children: ReactNode
}

/** The frame of the settings: the tabs that the caller may open. */
export function SettingsPage({ tab, children }: SettingsPageProps) {
  const me = useMe()
  const navigate = useNavigate()
  const tabs = TABS.filter(({ isVisible }) => isVisible(me))
  const label = TABS.find(({ name }) => name === tab)?.label ?? 'Settings'
  return (
    <Page title={label} crumbs={CRUMBS} isHeading>
      <Tabs
        label="Settings"
        tabs={tabs}
        current={tab}
        onChange={(name) => void navigate({ to: `/settings/${name}` })}
      />
      {children}
    </Page>
  )
}
