import type { IconName } from '../components/shapes.tsx'
import type { Me } from '../data/queries.ts'
import { canSomewhere } from '../data/permissions.ts'

export interface NavItem {
  readonly name:
    | 'overview'
    | 'groups'
    | 'messages'
    | 'replays'
    | 'approvals'
    | 'sources'
    | 'audit'
    | 'settings'
  readonly label: string
  readonly to: string
  readonly icon: IconName
  /** Second key after `g`. */
  readonly key?: string
  /** Begins a new block of the sidebar. */
  readonly isApart?: true
  /** Whether the tab bar of a narrow page has it. */
  readonly isTab?: true
  readonly isVisible?: (me: Me) => boolean
}

// biome-ignore format: one row per screen
export const NAV: readonly NavItem[] = [
  { name: 'overview', label: 'Overview', to: '/', icon: 'overview', key: 'o', isTab: true },
  { name: 'groups', label: 'Groups', to: '/groups', icon: 'groups', key: 'g', isTab: true },
  { name: 'messages', label: 'Messages', to: '/messages', icon: 'messages', key: 'm' },
  { name: 'replays', label: 'Replays', to: '/replays', icon: 'replays', key: 'r', isTab: true },
  { name: 'approvals', label: 'Approvals', to: '/approvals', icon: 'approvals', key: 'a', isTab: true, isVisible: (me) => canSomewhere(me, 'approve') || canSomewhere(me, 'replay') },
  { name: 'sources', label: 'Sources', to: '/sources', icon: 'sources', key: 's', isApart: true },
  { name: 'audit', label: 'Audit', to: '/audit', icon: 'audit', isVisible: (me) => canSomewhere(me, 'configure') },
  { name: 'settings', label: 'Settings', to: '/settings', icon: 'settings' },
]

/** Returns the screens that the caller may open. */
export const navFor = (me: Me): readonly NavItem[] =>
  NAV.filter(({ isVisible }) => isVisible?.(me) ?? true)
