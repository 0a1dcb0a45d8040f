import type { Group } from '@redrive/api'
import { Link } from '@tanstack/react-router'
import { Avatar } from '../../components/avatar.tsx'
import { Checkbox } from '../../components/checkbox.tsx'
import { FailureClass } from '../../components/failure-class.tsx'
import { Icon, Mark } from '../../components/icon.tsx'
import { Peer } from '../../components/peer.tsx'
import { Sparkline } from '../../components/sparkline.tsx'
import { Tag } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useNow } from '../../clock.ts'
import { useLiveQuery } from '../../data/live.ts'
import { useMe } from '../../data/me.ts'
import { personName } from '../../data/permissions.ts'
import { trendQuery } from '../../data/trends.ts'
import { Spacer, useWindowRows } from '../../list/window-rows.tsx'
import { groupPath } from '../../paths.ts'
import { countText } from '../../words/numbers.ts'
import { barsOf, HOUR_MS, RANGES } from '../../words/trends.ts'
import type { Item } from './sections.ts'

const ROW_PX = 57
const SECTION_PX = 36

export interface GroupsTableProps {
  readonly items: readonly Item[]
  readonly selected: ReadonlySet<string>
  readonly focused: string | undefined
  readonly onSelect: (id: string, isSelected: boolean, withRange: boolean) => void
  readonly onSelectAll: (isSelected: boolean) => void
  readonly onFold: (section: string, isFolded: boolean) => void
}

/** A real table in which only the visible rows exist. */
export function GroupsTable(props: GroupsTableProps) {
  const { items, selected, focused, onSelect, onSelectAll, onFold } = props
  const { frame, visible, before, after } = useWindowRows({
    count: items.length,
    heightOf: (at) => (items[at]?.kind === 'section' ? SECTION_PX : ROW_PX),
    focusedAt: items.findIndex((item) => item.kind === 'group' && item.group.id === focused),
  })
  const count = items.filter(({ kind }) => kind === 'group').length
  return (
    <div ref={frame}>
      <table className="table groups-table" aria-rowcount={items.length + 1}>
        <Head
          isAll={selected.size === count}
          isPartly={selected.size > 0 && selected.size < count}
          onSelectAll={onSelectAll}
        />
        <tbody>
          <Spacer height={before} />
          {visible.map((index) => {
            const item = items[index]
            if (item === undefined) return null
            if (item.kind === 'section')
              return <SectionRow key={item.name} {...item} onFold={onFold} />
            return (
              <GroupRow
                key={item.group.id}
                group={item.group}
                index={index}
                isSelected={selected.has(item.group.id)}
                isFocused={item.group.id === focused}
                onSelect={onSelect}
              />
            )
          })}
          <Spacer height={after} />
        </tbody>
      </table>
    </div>
  )
}

interface HeadProps {
  readonly isAll: boolean
  readonly isPartly: boolean
  readonly onSelectAll: (isSelected: boolean) => void
}

const Head = ({ isAll, isPartly, onSelectAll }: HeadProps) => (
  <thead>
    <tr>
      <th className="groups-check">
        <Checkbox
          label="Select all groups"
          isChecked={isAll}
          isPartly={isPartly}
          onChange={onSelectAll}
        />
      </th>
      <th scope="col">What failed</th>
      <th scope="col" className="only-wide groups-trend">
        24 h
      </th>
      <th scope="col" className="num">
        Open
      </th>
      <th scope="col" className="num only-wide">
        Total
      </th>
      <th scope="col" className="num only-wide">
        First
      </th>
      <th scope="col" className="num">
        Last
      </th>
      <th scope="col" className="only-wide">
        In a run
      </th>
      <th scope="col" className="only-wide">
        Owner
      </th>
    </tr>
  </thead>
)

type SectionRowProps = Extract<Item, { kind: 'section' }> & {
  readonly onFold: (section: string, isFolded: boolean) => void
}

const SectionRow = ({ name, groups, isFolded, onFold }: SectionRowProps) => (
  <tr className="table-section">
    <td className="groups-check">
      <button
        type="button"
        className="groups-fold"
        aria-expanded={!isFolded}
        aria-label={`${name}: ${isFolded ? 'unfold' : 'fold'}`}
        onClick={() => onFold(name, !isFolded)}
      >
        <Icon name={isFolded ? 'right' : 'down'} />
      </button>
    </td>
    <td>
      <b>
        <Peer text={name} most={80} />
      </b>{' '}
      <span className="faint">
        {countText(groups.length)} {groups.length === 1 ? 'group' : 'groups'}
      </span>
    </td>
    <td className="only-wide" />
    <td className="num strong">
      {countText(groups.reduce((sum, { openCount }) => sum + openCount, 0))}
    </td>
    <td className="only-wide" />
    <td className="only-wide" />
    <td />
    <td className="only-wide" />
    <td className="only-wide" />
  </tr>
)

interface GroupRowProps {
  readonly group: Group
  readonly index: number
  readonly isSelected: boolean
  readonly isFocused: boolean
  readonly onSelect: GroupsTableProps['onSelect']
}

function GroupRow({ group, index, isSelected, isFocused, onSelect }: GroupRowProps) {
  const now = useNow()
  const me = useMe()
  const { id, title, openCount, count, firstSeenAt, lastSeenAt, replayingCount, owner } = group
  return (
    <tr
      aria-rowindex={index + 2}
      aria-selected={isSelected}
      data-selected={isSelected ? '' : undefined}
      data-focused={isFocused ? '' : undefined}
    >
      <td className="groups-check">
        <Checkbox
          label={`Select ${title.slice(0, 80)}`}
          isChecked={isSelected}
          onChange={(isChecked, withRange) => onSelect(id, isChecked, withRange)}
        />
      </td>
      <td className="groups-what">
        <div className="row">
          <GroupMark group={group} />
          <Link to={groupPath(id)} className="groups-title">
            <Peer text={title} most={300} />
          </Link>
          <span className="row only-wide">
            {now - firstSeenAt < 24 * HOUR_MS ? <Tag text="new" tone="bad" /> : null}
            {group.regressed ? <Tag text="regressed" tone="bad" /> : null}
          </span>
        </div>
        <GroupLine group={group} />
      </td>
      <td className="only-wide groups-trend">
        <DayTrend group={group} now={now} />
      </td>
      <td className="num strong">{countText(openCount)}</td>
      <td className="num quiet only-wide">{countText(count)}</td>
      <td className="num quiet only-wide">
        <Time at={firstSeenAt} />
      </td>
      <td className="num quiet">
        <Time at={lastSeenAt} />
      </td>
      <td className="quiet only-wide">{replayingCount > 0 ? countText(replayingCount) : '–'}</td>
      <td className="only-wide">
        {owner === undefined ? (
          <span className="faint">–</span>
        ) : (
          <Avatar name={personName(owner, me)} size="small" />
        )}
      </td>
    </tr>
  )
}

const MARKS = { open: 'open', muted: 'off', resolved: 'done' } as const
const TONES = { open: 'bad', muted: 'idle', resolved: 'good' } as const

const GroupMark = ({ group: { state, regressed } }: { readonly group: Group }) => (
  <>
    <Mark shape={regressed && state === 'open' ? 'back' : MARKS[state]} tone={TONES[state]} />
    <span className="visually-hidden">{state}</span>
  </>
)

/** The second line. The code is here, so that the end of the title is not cut. */
const GroupLine = ({ group }: { readonly group: Group }) => (
  <div className="groups-line">
    <FailureClass name={group.class} />
    {group.code === undefined ? null : (
      <code className="only-wide">
        <Peer text={group.code} most={40} />
      </code>
    )}
    <span className="cut">
      {group.handler === undefined ? null : (
        <>
          <Peer text={group.handler} most={80} /> on{' '}
        </>
      )}
      <Peer text={group.source} most={80} />
    </span>
    <code className="faint only-wide">{group.id.slice(-8)}</code>
  </div>
)

/** Hours change slowly, so a minute between two updates is enough. */
function DayTrend({ group, now }: { readonly group: Group; readonly now: number }) {
  const points = useLiveQuery(trendQuery('24h', group.id), 60_000).data ?? []
  const values = barsOf(points, RANGES['24h'], now).map(({ count }) => count)
  return <Sparkline values={values} name={group.class} width={112} height={28} />
}
