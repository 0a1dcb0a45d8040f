import type { Group } from '@redrive/api'
import { FAILURE_CLASSES } from '@redrive/api/enums'
import { Link } from '@tanstack/react-router'
import { Icon } from '../../components/icon.tsx'
import { Status } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import type { Source } from '../../data/queries.ts'
import { countText } from '../../words/numbers.ts'
import { brokerText } from '../../words/sources.ts'
import '../../components/table.css'

export interface SourcesTableProps {
  readonly sources: readonly Source[]
  readonly chosen: string | undefined
}

export const SourcesTable = ({ sources, chosen }: SourcesTableProps) => (
  <table className="table sources-table">
    <thead>
      <tr>
        <th scope="col">Source</th>
        <th scope="col" className="num">
          Open
        </th>
        <th scope="col" className="only-wide">
          By class
        </th>
        <th scope="col" className="num only-wide">
          Oldest
        </th>
        <th scope="col">Ingest</th>
        <th scope="col" className="num only-wide">
          In the broker
        </th>
        <th scope="col" className="num only-wide">
          Consumer lag
        </th>
        <th scope="col" className="num only-wide">
          Set aside
        </th>
      </tr>
    </thead>
    <tbody>
      {sources.map((source) => (
        <Row key={source.source} source={source} isChosen={source.source === chosen} />
      ))}
    </tbody>
  </table>
)

function Row({ source: one, isChosen }: { readonly source: Source; readonly isChosen: boolean }) {
  const { source, open, openByClass, oldestAt, lastIngestedAt, setAside, state } = one
  const broker = brokerText(one)
  return (
    <tr data-selected={isChosen ? '' : undefined} data-focused={isChosen ? '' : undefined}>
      <td>
        <span className="row">
          <Icon name="sources" className="faint" />
          <span className="sources-name">
            <Link
              to="/sources"
              search={isChosen ? {} : { source }}
              replace
              className="strong cut"
              aria-expanded={isChosen}
            >
              {source}
            </Link>
            <span className="faint small">
              {broker === undefined ? null : `${broker}, `}
              {lastIngestedAt === undefined ? (
                'no dead letter yet'
              ) : (
                <>
                  last dead letter <Time at={lastIngestedAt} isAgo />
                </>
              )}
            </span>
          </span>
        </span>
      </td>
      <td className={open > 0 ? 'num strong' : 'num faint'}>{countText(open)}</td>
      <td className="only-wide">
        <ByClass counts={openByClass} />
      </td>
      <td className="num quiet only-wide">
        {oldestAt === undefined ? '–' : <Time at={oldestAt} />}
      </td>
      <td>
        <Status state={state.status} />
        {/* On a narrow page the columns of these numbers are missing. */}
        {setAside > 0 ? (
          <div className="only-narrow small sources-narrow">{countText(setAside)} set aside</div>
        ) : null}
      </td>
      <td className="num quiet only-wide">{countOrDash(state.depth)}</td>
      <td className="num quiet only-wide">{countOrDash(state.lag)}</td>
      <td className="num only-wide">
        {setAside === 0 ? (
          <span className="faint">0</span>
        ) : (
          <Link to="/sources/set-aside" search={{ q: `source:${source}` }} className="link">
            {countText(setAside)}
          </Link>
        )}
      </td>
    </tr>
  )
}

const countOrDash = (count: number | undefined) => (count === undefined ? '–' : countText(count))

interface ByClassProps {
  readonly counts: Readonly<Partial<Record<Group['class'], number>>>
}

/** An icon and a number for each class. The tooltip and screen readers have its name. */
function ByClass({ counts }: ByClassProps) {
  const shown = FAILURE_CLASSES.filter((name) => (counts[name] ?? 0) > 0)
  if (shown.length === 0) return <span className="faint">–</span>
  return (
    <span className="sources-classes">
      {shown.map((name) => (
        <span key={name} className="row" title={name}>
          <span data-class={name}>
            <Icon name={`class-${name}`} />
          </span>
          <span className="visually-hidden">{name}</span>
          {countText(counts[name] ?? 0)}
        </span>
      ))}
    </span>
  )
}
