import { Link } from '@tanstack/react-router'
import { Card } from '../../components/card.tsx'
import { Empty } from '../../components/feedback.tsx'
import { Icon } from '../../components/icon.tsx'
import { Peer } from '../../components/peer.tsx'
import type { FingerprintPreview } from '../../data/settings.ts'
import { groupPath } from '../../paths.ts'
import { cappedText, countText } from '../../words/numbers.ts'

export interface PreviewProps {
  readonly title: string
  readonly found: FingerprintPreview
}

/** What a dry run found: the groups that dead letters would leave, and the group that they would join. */
export function Preview({ title, found: { rules, examined, isComplete } }: PreviewProps) {
  const moved = rules.filter(({ count }) => count > 0)
  const sum = moved.reduce((total, { count }) => total + count, 0)
  return (
    <Card
      title={title}
      note={`on ${cappedText(examined, !isComplete)} open dead letters`}
      footer={
        <span role="status">
          {cappedText(sum, !isComplete)} of {cappedText(examined, !isComplete)} open dead letters
          would move.
          {isComplete ? '' : ' The time ended first, so the counts are lower limits.'}
        </span>
      }
    >
      {moved.length === 0 ? (
        <Empty title="No open dead letter would move." />
      ) : (
        <table className="table">
          <thead>
            <tr>
              <th scope="col">Now</th>
              <th scope="col">With the rule</th>
              <th scope="col" className="num">
                Moves
              </th>
            </tr>
          </thead>
          <tbody>
            {moved.map(({ rule, group, count, from }) => (
              <tr key={rule ?? ''}>
                <td>
                  {from.map((one) => (
                    <div key={one.group} className="preview-from">
                      <Link to={groupPath(one.group)} className="link mono">
                        <Peer text={one.title} most={200} />
                      </Link>{' '}
                      <span className="faint small nowrap">{countText(one.count)}</span>
                    </div>
                  ))}
                </td>
                <td>
                  <span className="preview-to">
                    <Icon name="right" className="faint" />
                    <b>{group ?? 'the built-in groups'}</b>
                  </span>
                </td>
                <td className="num strong">{countText(count)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </Card>
  )
}
