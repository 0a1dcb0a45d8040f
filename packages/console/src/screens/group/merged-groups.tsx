import type { Group } from '@redrive/api'
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { Button } from '../../components/button.tsx'
import { LoadError, Skeleton } from '../../components/feedback.tsx'
import { Peer } from '../../components/peer.tsx'
import { Time } from '../../components/time.tsx'
import { useMe } from '../../data/me.ts'
import { canSomewhere, personName, refusal } from '../../data/permissions.ts'
import { mergedGroupsQuery } from '../../data/queries.ts'
import { SeparateDialog } from './regroup-dialogs.tsx'

/** The groups that operators merged into this one, with their reasons. Each can be separated again. */
export function MergedGroups({ group }: { readonly group: Group }) {
  const me = useMe()
  const found = useQuery(mergedGroupsQuery(group.id))
  const [separating, setSeparating] = useState<Group>()
  if (found.error !== null) return <LoadError what="the merged groups" error={found.error} />
  if (found.data === undefined) return <Skeleton rows={group.mergedCount} />
  return (
    <section aria-label="Merged groups">
      <table className="table">
        <thead>
          <tr>
            <th scope="col">Merged group</th>
            <th scope="col">Reason</th>
            <th scope="col" className="only-wide">
              By
            </th>
            <th scope="col" className="num only-wide">
              Merged
            </th>
            <th>
              <span className="visually-hidden">Action</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {found.data.map((merged) => (
            <tr key={merged.id}>
              <td className="mono">
                <Peer text={merged.title} most={120} />
              </td>
              <td>
                <Peer text={merged.mergedInto?.reason ?? ''} most={200} />
              </td>
              <td className="quiet only-wide">{personName(merged.mergedInto?.by ?? '', me)}</td>
              <td className="num quiet only-wide">
                {merged.mergedInto === undefined ? null : <Time at={merged.mergedInto.at} />}
              </td>
              <td className="num">
                {canSomewhere(me, 'discard') ? (
                  <Button
                    size="small"
                    disabledReason={refusal(me, 'discard', group.source)}
                    onClick={() => setSeparating(merged)}
                  >
                    Separate…
                  </Button>
                ) : null}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {separating === undefined ? null : (
        <SeparateDialog group={separating} from={group} onClose={() => setSeparating(undefined)} />
      )}
    </section>
  )
}
